// What must be true of the history of one key. Each check appends what is not.
#pragma once

#include <vector>

#include "histories/key_history.h"
#include "histories/violation.h"

namespace lockd::histories {

// I2 and I4: who was certainly in line, or had its grant, before another asked, has the smaller
// fence.
void check_order(const KeyHistory& key, std::vector<Violation>& violations);

// I1, and I3 or, over a restart, I8: of a semaphore no more permits than the limit are held at
// once, and a lock by one or by those who share it; and nobody is granted before enough of those
// before it are certainly over.
void check_exclusion(const KeyHistory& key, std::vector<Violation>& violations);

// I5, over a restart I8, after the faults I12: who was turned away, or waited for long, had
// somebody in the way, or behind whom to wait.
void check_conservation(const KeyHistory& key, std::vector<Violation>& violations);

}  // namespace lockd::histories
