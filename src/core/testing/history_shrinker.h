// How a history that fails becomes one that shows why. For tests.
//
// First the end is cut off, which cannot matter; then the rest is thinned out; then what is left
// becomes simpler.
#pragma once

#include <rapidcheck.h>

#include "core/testing/lock_history.h"

namespace lockd {

rc::Seq<LockHistory> simpler_histories(const LockHistory& history);

}  // namespace lockd
