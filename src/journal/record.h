// Events as bytes: what a frame's payload is made of. docs/journal_format.md is the grammar.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lockd/journal.h"

namespace lockd {

// No event is longer: the two texts, the three numbers that may be long, and what frames them.
inline constexpr std::size_t kRecordSizeMax = kKeySizeMax + kHolderSizeMax + 64;

// Writes at `to`, which has room for kRecordSizeMax, and returns the end of it. The event's texts
// are within their limits.
char* encode(const Event& event, char* to);

// Takes an event from the front of `bytes`, which it then points into. False, and `bytes` at the
// record, if there is none: a type that is not known, a text or a number beyond its limits.
bool take_event(std::string_view& bytes, Event* event);

}  // namespace lockd
