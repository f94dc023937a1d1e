// What must be true of the history of one key. Each check appends what is not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "histories/finding.h"
#include "histories/key_history.h"

namespace lockd::histories {

// I2 and I4: who was certainly in the queue, or had its grant, before another asked, has the
// smaller fence.
void check_order(const KeyHistory& key, std::vector<Finding>& findings);

// I1, and I3 or, over a restart, I8: of a semaphore no more permits than the limit are held at
// once, and a lock by one or by those who share it; and nobody is granted before enough of those
// before it are certainly over.
void check_exclusion(const KeyHistory& key, std::vector<Finding>& findings);

// When several keys can have been granted in one step, as far as they have been looked at: after
// those who were before it, and before those who came after.
struct SetGrant {
  Instant from = 0;
  Instant to = kNever;
  std::string from_key{};  // which keys say so
  std::string to_key{};
  std::uint32_t line = 0;
};
using SetGrants = std::map<SetName, SetGrant>;

// I15: there is such a time. Each key is noted in `grants`, and then all are looked at.
void note_set_grants(const KeyHistory& key, SetGrants& grants);
void check_set_grants(const SetGrants& grants, std::vector<Finding>& findings);

// A try for several keys that was turned away, as far as its keys have been looked at.
struct SetTry {
  std::uint32_t keys = 0;
  std::uint32_t keys_seen = 0;
  bool may_be_refused = false;  // by one of those
  std::string key{};            // the last of them, and the line
  std::uint32_t line = 0;
};
using SetTries = std::map<SetName, SetTry>;

// I5, over a restart I8, after the faults I12: who was turned away, or waited for long, had
// somebody in the way, or behind whom to wait. A try for several keys is turned away by any of
// them: it is noted in `tries`, for check_tries_for_sets(), when all keys have been looked at.
void check_conservation(const KeyHistory& key, SetTries& tries, std::vector<Finding>& findings);
void check_tries_for_sets(const SetTries& tries, std::vector<Finding>& findings);

}  // namespace lockd::histories
