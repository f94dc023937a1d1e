// Generates random histories, and shrinks those that fail. For tests.
#pragma once

#include <rapidcheck.h>

#include "core/testing/lock_history.h"

namespace lockd {

// With `many_keys` a history has many keys that fall due together; otherwise it has few keys. A
// failing history shrinks in three steps: it loses its end, then single operations, and then the
// remaining operations become simpler.
rc::Gen<LockHistory> generate_history(bool many_keys);

}  // namespace lockd
