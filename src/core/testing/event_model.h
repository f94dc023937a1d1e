// Knows keys by their key_events alone, and says which rule an event breaks. For tests.
//
//   first-come       a grant from a queue goes to its first place; no grant passes a queue
//   shares-or-alone  a lock has one hold, or all its holds share it
//   holders-bounded  the permits in use never exceed the limit, which only `resized` changes
//   fences-rise      each grant of a key has a larger fence than the grants before it
//   settled-once     a hold or a place that ends has begun, and ends once, as it began
//   counted          each event says how many holders and waiters the key has after it
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockd/observer.h"
#include "lockd/stats.h"
#include "lockd/types.h"

namespace lockd {

class EventModel {
 public:
  struct Entry {  // a hold or a place in the queue
    std::string holder;
    ClientIdentity client;
    Mode mode;
    std::uint32_t permits;
    Time since;
    bool is_recovered = false;  // holder, client and since are unknown
    bool operator==(const Entry& other) const;
  };
  struct Key {
    std::uint32_t limit = 0;  // 0: not known yet
    Fence last_fence = 0;
    std::map<Fence, Entry> holds;
    std::vector<std::pair<std::uint32_t, Entry>> queue;  // by place, the first to wait first
  };
  using Keys = std::map<std::pair<Kind, std::string>, Key>;  // once used, for ever

  // The rule that the event breaks and how, or an empty string.
  std::string see(const KeyEvent& event);
  // A hold whose grant no event has shown.
  void recover(Kind kind, const std::string& name, Fence fence, Mode mode, std::uint32_t permits,
               std::uint32_t limit);
  void clear() { keys_.clear(); }

  const Keys& keys() const { return keys_; }
  const Keys::value_type& find(const KeyEvent& event) const {
    return *keys_.find({event.kind, std::string(event.key)});
  }
  // Whether a request of these terms fits beside the holds.
  static bool has_room(Kind kind, const Key& key, Mode mode, std::uint32_t permits);

  // In what the stats differ from what was seen, or an empty string. Renewals, refusals, keys and
  // lags cannot be seen.
  std::string difference(const Stats& stats) const;

 private:
  static Entry entry_of(const KeyEvent& event, Time since);
  std::string begin(Key& key, const KeyEvent& granted);
  std::string end(Key& key, const KeyEvent& ended);
  std::string leave(Key& key, const KeyEvent& gave_up);

  Keys keys_;
  Stats stats_;
};

}  // namespace lockd
