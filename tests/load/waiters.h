// How many wait for a lock, as the statistics say.
#pragma once

#include <cstddef>
#include <string_view>

#include "support/line_client.h"

namespace lockd {

// Asks, without a pause, until `count` wait for the lock `key` (which needs no escapes in JSON).
// False, with a failure of the test, when that does not come about.
bool await_waiters(LineClient& observer, std::string_view key, std::size_t count);

}  // namespace lockd
