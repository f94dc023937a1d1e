// Whether a history can be true: everything that is certain, of all operations, in O(n log n).
//
// Fences say in which order the grants of a key were made, so nothing has to be searched for. There
// are no false alarms: a history that is refused is wrong, whatever the machine was doing
// meanwhile, as long as it did not stand still for kLateMax.
#pragma once

#include <vector>

#include "histories/finding.h"
#include "histories/operation.h"

namespace lockd::histories {

// The history's operations are in the order of their calls, as in a file.
std::vector<Finding> check(const History& history);

}  // namespace lockd::histories
