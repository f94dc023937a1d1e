#include "lockd/engine.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "engine/engine_core.h"
#include "engine/hold_renewer.h"
#include "lockd/batch.h"

namespace lockd {
namespace {

// The listener of one blocking call, on the call's stack.
class BlockedCall final : public Listener {
 public:
  void on_wait_done(const WaitResult& result) noexcept override {
    // Notifies under the lock, so that the caller cannot destroy this too early.
    const std::lock_guard lock(mutex_);
    result_ = result;
    done_ = true;
    done_changed_.notify_one();
  }

  WaitResult wait() {
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
    return result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_changed_;
  WaitResult result_;
  bool done_ = false;
};

// Ends the batch and returns `result` once it is durable, or `storage` if the journal fails.
template <typename Result>
Result when_durable(Engine& engine, Batch& batch, Result result) {
  if (engine.wait_durable(batch.commit())) return result;
  return {Outcome::storage};
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : core_(std::make_unique<detail::EngineCore>(options)) {}

Engine::~Engine() {
  core_->close();
  core_->blocked_calls().wait_until_none();  // hold() may be about to pass a grant to renewer_
  if (renewer_ != nullptr) renewer_->stop();
}

AcquireResult Engine::acquire(const AcquireRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return {Outcome::cancelled};
  const bool waits = request.wait > Duration::zero();
  if (waits && request.keys.size() != 1) return acquire_in_queue(request, std::move(stop));

  // A free key needs no listener. Without one the request is not queued.
  AcquireResult result;
  Batch batch(*this);
  const Answer answer = batch.acquire(request, nullptr, 0, &result.conflicts);
  if (answer.outcome == Outcome::held && waits) {
    batch.commit();  // notifies listeners whose waits the request ended, before this call blocks
    return acquire_in_queue(request, std::move(stop));
  }
  result.outcome = answer.outcome;
  result.grant = answer.grant;
  return when_durable(*this, batch, std::move(result));
}

AcquireResult Engine::acquire_in_queue(const AcquireRequest& request, std::stop_token stop) {
  const InFlight::Call blocked(core_->blocked_calls());  // destroyed last: keeps the engine alive
  AcquireResult result;
  BlockedCall call;
  Batch batch(*this);
  const Answer answer = batch.acquire(request, &call, 0, &result.conflicts);
  result.outcome = answer.outcome;
  result.grant = answer.grant;
  if (answer.outcome != Outcome::queued) return when_durable(*this, batch, std::move(result));
  batch.commit();
  const std::stop_callback on_stop(std::move(stop), [&] { Batch(*this).cancel(answer.wait); });
  const WaitResult ended = call.wait();
  result.outcome = ended.outcome;
  result.grant = ended.grant;
  if (ended.outcome != Outcome::timeout && ended.outcome != Outcome::held) return result;
  result.conflicts = batch.explain(request);
  return when_durable(*this, batch, std::move(result));
}

AcquireResult Engine::renew(const HoldId& hold, std::optional<Duration> ttl) {
  std::size_t missing = 0;
  Batch batch(*this);
  const Answer answer = batch.renew(hold, ttl, &missing);
  AcquireResult result{answer.outcome, answer.grant};
  if (is_not_held(answer.outcome)) result.conflicts.push_back({.item = missing});
  return when_durable(*this, batch, std::move(result));
}

ReleaseResult Engine::release(const HoldId& hold) {
  Batch batch(*this);
  return when_durable(*this, batch, batch.release(hold));
}

RevokeResult Engine::revoke(const RevokeRequest& request) {
  Batch batch(*this);
  return when_durable(*this, batch, batch.revoke(request));
}

Outcome Engine::resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                       std::string_view by) {
  Batch batch(*this);
  return when_durable(*this, batch, batch.resize(key, limit, reason, by));
}

FenceResult Engine::fence(std::string_view key) {
  Batch batch(*this);
  return when_durable(*this, batch, FenceResult{Outcome::ok, batch.fence(key)});
}

StatusResult Engine::status(Kind kind, std::string_view key, std::size_t entries_max) {
  Batch batch(*this);
  return when_durable(*this, batch,
                      StatusResult{Outcome::ok, batch.status(kind, key, entries_max)});
}

Position Engine::list(const std::function<void(const KeyStatus&)>& visit,
                      std::size_t entries_max) const {
  ListCursor cursor;
  return list_some(cursor, SIZE_MAX, visit, entries_max);
}

Position Engine::list_some(ListCursor& cursor, std::size_t keys_max,
                           const std::function<void(const KeyStatus&)>& visit,
                           std::size_t entries_max) const {
  return core_->list_some(cursor, keys_max, visit, entries_max);
}

Owned Engine::owned(SessionId session) const { return core_->owned(session); }
Stats Engine::stats() const { return core_->stats(); }
Position Engine::history(const HistoryQuery& query,
                         const std::function<void(const KeyEvent&)>& visit) const {
  return core_->history(query, visit);
}
Ages Engine::ages() const { return core_->age_scanner().ages(core_->now()); }
std::string Engine::check() const { return core_->check(); }
void Engine::close() { core_->close(); }
void Engine::drain_notifications() { core_->notifier().drain(); }
bool Engine::is_durable(Position position) const { return core_->notifier().is_durable(position); }
bool Engine::wait_durable(Position position) { return core_->notifier().wait(position); }
Journal::State Engine::journal_state() const { return core_->journal_state(); }
bool Engine::journal_is_behind() const { return core_->journal_is_behind(); }
Duration Engine::storage_wait() const { return core_->storage_wait(); }
Time Engine::sweep() { return core_->sweep(); }
Time Engine::now() const { return core_->now(); }

}  // namespace lockd
