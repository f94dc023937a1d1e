// Rebuilds keys from their key events, and reports the rule that an event breaks. For tests.
//
//   first-come       a grant from a queue goes to its first place; no grant passes a queue
//   shares-or-alone  a lock has one hold, or all its holds share it
//   holders-bounded  the permits in use never exceed the limit, which only `resized` changes
//   fences-rise      each grant of a key has a larger fence than the grants before it
//   settled-once     a hold or a place ends once, and matches the event that began it
//   counted          each event has the numbers of holders and waiters after it
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
    std::vector<std::pair<std::uint32_t, Entry>> queue;  // by place, the front of the queue first
  };
  using Keys = std::map<std::pair<Kind, std::string>, Key>;  // keys are never removed

  // Applies the event. Returns the rule that it breaks and how, or an empty string.
  std::string see(const KeyEvent& event);
  // Adds a hold whose grant was not among the events.
  void recover(Kind kind, const std::string& name, Fence fence, Mode mode, std::uint32_t permits,
               std::uint32_t limit);
  void clear() { keys_.clear(); }

  const Keys& keys() const { return keys_; }
  const Keys::value_type& find(const KeyEvent& event) const {
    return *keys_.find({event.kind, std::string(event.key)});
  }
  // Whether a request with this mode and these permits fits beside the holds.
  static bool has_room(Kind kind, const Key& key, Mode mode, std::uint32_t permits);

  // How the stats differ from the events seen, or an empty string. Renewals, refusals, the number
  // of keys and expiry lags are not compared, because no event shows them.
  std::string difference(const Stats& stats) const;

 private:
  static Entry entry_of(const KeyEvent& event, Time since);
  std::string begin_hold(Key& key, const KeyEvent& granted);
  std::string end_hold(Key& key, const KeyEvent& ended);
  std::string leave_queue(Key& key, const KeyEvent& gave_up);

  Keys keys_;
  Stats stats_;
};

}  // namespace lockd
