// OutputGate: holds back each session's output until the journal position that it depends on is
// durable. No client may learn of a state that a crash could undo.
//
//   append ──▶ output ──cork(position)──▶ corked ──durable ≥ position──▶ sent
//
// Each reply depends on a position. What a session appends while it is corked is corked in turn, so
// a busy client receives something with every sync, and no session waits for another session's
// writes.
//
// The gate also knows which replies to waits have not left, so that the host can revoke grants that
// no client will learn of.
//
// Used by the host's thread, but for on_durable().
#pragma once

#include <atomic>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "lockd/batch.h"
#include "lockd/engine.h"
#include "server/session/hosted_session.h"
#include "server/worker_stats.h"

namespace lockd {

class OutputGate {
 public:
  OutputGate(const Engine& engine, WorkerStats& stats, std::function<void()> wake)
      : engine_(engine), stats_(stats), wake_(std::move(wake)) {}

  // What the session appends now depends on `position`, besides what it depended on before.
  static void depend(HostedSession& hosted, Position position) {
    hosted.gate.depends_on = std::max(hosted.gate.depends_on, position);
  }
  // The reply to this wait is appended next.
  static void note_hand_off(HostedSession& hosted, const WaitResult& result);

  // Sends the output, or corks it. Precondition: it is not corked.
  void send_or_cork(HostedSession& hosted);
  // Sends the corked part, and sends or corks the rest.
  void uncork(HostedSession& hosted);
  // A session whose corked output may leave, or 0. Call it until it returns 0; on_durable() then
  // wakes the loop for the next.
  SessionId next_durable();
  bool is_corked_at(const HostedSession& hosted) const {
    return hosted.gate.is_corked && hosted.gate.corked_at == last_position_;
  }
  bool is_durable(Position position) const { return engine_.is_durable(position); }

  // Whether the output has a grant that would outlive the session.
  static bool has_undelivered(const HostedSession& hosted);
  // The client has left: ends the grants whose replies have not left, and removes the replies.
  static void revoke_undelivered(HostedSession& hosted, Batch& batch);

  // Any thread. More may have become durable.
  void on_durable() {
    if (wants_durable_.exchange(false)) wake_();
  }

 private:
  struct Corked {
    Position position;
    SessionId id;
    friend bool operator>(const Corked& a, const Corked& b) { return a.position > b.position; }
  };

  void count_hand_offs(HostedSession& hosted, std::uint64_t until);

  const Engine& engine_;
  WorkerStats& stats_;
  const std::function<void()> wake_;
  std::priority_queue<Corked, std::vector<Corked>, std::greater<>> corked_;
  Position last_position_ = 0;              // of what next_durable() returned
  std::atomic<bool> wants_durable_{false};  // something is corked
};

}  // namespace lockd
