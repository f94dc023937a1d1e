// The engine's refusals as replies.
#pragma once

#include <vector>

#include "service/caller.h"
#include "service/reply.h"
#include "service/session_context.h"

namespace lockd {

// Whether the outcome depends on who holds the key, so that a description of the holds explains it.
bool depends_on_holder(Outcome outcome);

Refused refuse(const SessionContext& context, Outcome outcome);
// Describes the holds of `conflicts` as far as the caller may see them.
Refused refuse_acquire(const SessionContext& context, const Caller& caller, Outcome outcome,
                       const KeyItems& keys, std::vector<Conflict> conflicts);

}  // namespace lockd
