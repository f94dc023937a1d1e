#include "service/refusals.h"

#include <memory>
#include <utility>

#include "server/reports/client_json.h"

namespace lockd {
namespace {

std::optional<HeldBy> held_by(const SessionContext& context, const Caller& caller,
                              const KeyItem& item) {
  const auto hold = context.batch.last_to_expire(item.kind, item.key);
  if (!hold) return {};
  static const ClientIdentity unnamed;
  const ClientIdentity& client = hold->client == nullptr ? unnamed : *hold->client;
  HeldBy held{.holder = holder_text(*hold, context.clients),
              .client = client.name,
              .fence = hold->fence,
              .mode = hold->mode,
              .held = hold->held,
              .remaining = hold->remaining};
  if (caller.permit()->may(Right::read)) {
    held.peer = peer_of(client, context.clients.find(hold->session));
    held.note = client.note;
  }
  return held;
}

}  // namespace

bool depends_on_holder(Outcome outcome) {
  switch (outcome) {
    case Outcome::held:
    case Outcome::timeout:
    case Outcome::limit_mismatch:
    case Outcome::mode_mismatch:
    case Outcome::permits_mismatch: return true;
    default: return false;
  }
}

Refused refuse(const SessionContext& context, Outcome outcome) {
  Refused refused{.outcome = outcome};
  if (outcome == Outcome::not_leader) {
    refused.leader = std::make_shared<const LeaderAddress>(context.leader());
  }
  if (outcome == Outcome::storage) {
    refused.may_be_in_force = context.engine.journal_state() == Journal::State::failed;
  }
  return refused;
}

Refused refuse_acquire(const SessionContext& context, const Caller& caller, Outcome outcome,
                       const KeyItems& keys, std::vector<Conflict> conflicts) {
  Refused refused = refuse(context, outcome);
  if (!depends_on_holder(outcome)) return refused;
  for (Conflict& conflict : conflicts) {
    std::optional<HeldBy> holder = held_by(context, caller, keys[conflict.item]);
    refused.in_the_way.push_back({std::move(conflict), std::move(holder)});
  }
  return refused;
}

}  // namespace lockd
