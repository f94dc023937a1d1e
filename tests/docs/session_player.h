// Plays a session that a page shows against a server of its own, and says where it went otherwise.
#pragma once

#include <optional>

#include "docs/shown_session.h"

namespace lockd {

// The first thing that is not as shown; nothing when all is. Placeholders take their value from the
// first reply that has them: `<token1>` 32 lower-case hex digits, `<seconds1>` a number of JSON
// that is not negative.
std::optional<Complaint> play(const ShownSession& session);

}  // namespace lockd
