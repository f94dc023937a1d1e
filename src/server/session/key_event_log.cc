#include "server/session/key_event_log.h"

#include "server/log.h"
#include "server/reports/report.h"

namespace lockd {
namespace {

using Type = KeyEvent::Type;

PeerEvent lease_ran_out(LogLevel::warn, "lease expired");
PeerEvent slow_wait(LogLevel::warn, "slow wait");
PeerEvent slow_hold(LogLevel::warn, "slow hold");

// Null: it is not logged.
PeerEvent* line_of(Type type) {
  switch (type) {
    case Type::expired: return &lease_ran_out;
    case Type::slow_wait: return &slow_wait;
    case Type::slow_hold: return &slow_hold;
    default: return nullptr;
  }
}

void add_client(LogFields& fields, const KeyEvent& event) {
  if (!event.holder.empty()) fields.emplace_back("holder", event.holder);
  if (event.session != 0) fields.emplace_back("client_id", event.session);
  if (event.client == nullptr) return;
  const ClientIdentity& client = *event.client;
  if (!client.name.empty()) fields.emplace_back("client", client.name);
  if (!client.peer.empty()) fields.emplace_back("peer", client.peer);
  if (!client.note.empty()) fields.emplace_back("note", client.note);
}

LogFields fields_of(const KeyEvent& event) {
  LogFields fields{{"kind", event.kind == Kind::lock ? "lock" : "semaphore"}, {"key", event.key}};
  add_client(fields, event);
  if (event.fence != 0) fields.emplace_back("fence", event.fence);
  const bool waits = event.type == Type::slow_wait;
  fields.emplace_back(waits ? "waited_ms" : "held_ms", whole_ms(event.lasted));
  fields.emplace_back("waiters", event.waiters);
  return fields;
}

}  // namespace

void log_key_event(const KeyEvent& event) {
  PeerEvent* const line = line_of(event.type);
  if (line != nullptr && line->admits(PeerEvent::Clock::now())) line->log(fields_of(event));
}

}  // namespace lockd
