// Draws histories at random. For tests.
#pragma once

#include <rapidcheck.h>

#include "core/testing/lock_history.h"

namespace lockd {

// `crowd`: of many keys, that fall due together. Otherwise of few.
rc::Gen<LockHistory> generate_history(bool crowd);

}  // namespace lockd
