// Knows a LockTable by its key_events alone. For tests: what it has come to believe must be so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/testing/lock_model.h"
#include "lockd/observer.h"
#include "lockd/stats.h"

namespace lockd {

class EventModel {
 public:
  // Why it cannot have happened, or an empty string.
  std::string see(const KeyEvent& event);

  // In what the model differs from what was seen, or an empty string.
  std::string difference(const LockModel& model) const;
  // In what the stats differ from what was seen, or an empty string. Renewals, refusals, keys and
  // lags cannot be seen.
  std::string difference(const Stats& stats) const;

 private:
  struct Entry {  // a hold or a place in the queue
    std::string holder;
    ClientIdentity client;
    Mode mode;
    std::uint32_t permits;
    Time since;
    bool operator==(const Entry&) const = default;
  };
  struct Key {
    std::uint32_t limit = 0;  // 0: not known yet
    std::map<Fence, Entry> holds;
    std::vector<std::pair<std::uint32_t, Entry>> queue;  // by place, the first to wait first
  };

  static Entry entry_of(const KeyEvent& event, Time since);
  static std::string why_no_room(const Key& key, const KeyEvent& granted);
  std::string begin(Key& key, const KeyEvent& granted);
  std::string end(Key& key, const KeyEvent& ended);
  std::string leave(Key& key, const KeyEvent& gave_up);

  std::map<std::pair<Kind, std::string>, Key> keys_;  // those that are in use
  Stats stats_;
};

}  // namespace lockd
