// Draws histories at random, and makes simpler ones of one that fails. For tests.
#pragma once

#include <rapidcheck.h>

#include "core/testing/lock_history.h"

namespace lockd {

// `crowd`: of many keys, that fall due together. Otherwise of few. Of one that fails, first the end
// is cut off, which cannot matter; then the rest is thinned out; then what is left becomes simpler.
rc::Gen<LockHistory> generate_history(bool crowd);

}  // namespace lockd
