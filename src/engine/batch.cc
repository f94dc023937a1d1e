#include "lockd/batch.h"

#include "engine/engine_core.h"

namespace lockd {

Batch::Batch(Engine& engine) : core_(*engine.core_) {}

Batch::~Batch() {
  while (position_ != 0 || !settled_.empty()) commit();  // listeners may add to it
}

Answer Batch::acquire(const AcquireRequest& request, Listener* listener, std::uint64_t id,
                      Conflict* conflict) {
  Turn turn{position_, settled_};
  return core_.acquire(turn, request, listener, id, conflict);
}

Answer Batch::renew(const HoldId& hold, std::optional<Duration> ttl) {
  Turn turn{position_, settled_};
  return core_.renew(turn, hold, ttl);
}

Outcome Batch::release(const HoldId& hold) {
  Turn turn{position_, settled_};
  return core_.release(turn, hold);
}

bool Batch::withdraw(const HoldId& hold) {
  Turn turn{position_, settled_};
  return core_.withdraw(turn, hold);
}

Answer Batch::enqueue(const EnqueueRequest& request) {
  Turn turn{position_, settled_};
  return core_.enqueue(turn, request);
}

Answer Batch::await_turn(Session& session, Kind kind, std::string_view key, Duration wait,
                         Listener* listener, std::uint64_t id) {
  Turn turn{position_, settled_};
  return core_.await_turn(turn, session, kind, key, wait, listener, id);
}

bool Batch::cancel(const WaitId& wait) {
  Turn turn{position_, settled_};
  return core_.cancel(turn, wait);
}

void Batch::end_session(Session& session, bool keep_holds) {
  Turn turn{position_, settled_};
  core_.end_session(turn, session, keep_holds);
}

bool Batch::owns_anything(const Session& session) {
  Turn turn{position_, settled_};
  return core_.owns_anything(turn, session);
}

FenceStatus Batch::fence(std::string_view key) {
  Turn turn{position_, settled_};
  return core_.fence(turn, key);
}

bool Batch::explain(Kind kind, std::string_view key, Conflict* conflict) {
  Turn turn{position_, settled_};
  return core_.explain(turn, kind, key, conflict);
}

std::optional<KeyStatus> Batch::status(Kind kind, std::string_view key, std::size_t entries_max) {
  Turn turn{position_, settled_};
  return core_.status(turn, kind, key, entries_max);
}

Position Batch::commit() {
  Turn turn{position_, settled_};
  return core_.commit(turn);
}

}  // namespace lockd
