// The log's lines of what happens to keys without their holders' doing: a lease that ran out, what
// an admin ended or resized, what has become slow.
#pragma once

#include "lockd/observer.h"

namespace lockd {

// Any thread, also under a shard's lock: of kinds that are not logged, or not now, nothing is made.
void log_key_event(const KeyEvent& event);

}  // namespace lockd
