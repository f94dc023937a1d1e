// Inbox: what other threads, and the host's own, leave for the sessions of one host.
//
//   any thread ──post()──▶ inbox ──take()──▶ the host, once or a few times at the end of each turn
//
// The first message wakes the host's loop, unless the host is ending a turn: then it looks once
// more before it sleeps.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "lockd/requests.h"
#include "pubsub/signal_hub.h"
#include "server/client_registry.h"
#include "server/reports/report.h"

namespace lockd {

// An administrator disconnects the session. The function is called when it is gone.
struct DisconnectRequest {
  ClientHost::OnGone on_gone;
};
// The client that the session had disconnected is gone; the reply depends on the position.
struct ClientGone {
  Position position = 0;
};

class Inbox final : public Listener, public ReportReader, public ClientHost {
 public:
  using Message = std::variant<WaitResult, std::shared_ptr<const ReportPiece>, LostHold,
                               DisconnectRequest, ClientGone>;
  struct Letter {
    SessionId to = 0;
    Message message;
  };
  struct SignalLetter {
    std::shared_ptr<const Signal> signal;
    std::vector<SessionId> to;
  };

  // `wake` may be called by any thread, and causes a turn soon.
  explicit Inbox(std::function<void()> wake)
      : Listener(Listener::Delivery::at_commit), wake_(std::move(wake)) {}

  // Any thread.
  void post(SessionId to, Message message) EXCLUDES(mutex_);
  void post(SignalLetter letter) EXCLUDES(mutex_);

  // The host's thread. Between begin_turn() and end_turn() posting does not wake the loop.
  void begin_turn() EXCLUDES(mutex_);
  std::vector<Letter> take() EXCLUDES(mutex_);
  std::vector<SignalLetter> take_signals() EXCLUDES(mutex_);
  // Whether something is left.
  bool end_turn() EXCLUDES(mutex_);

 private:
  void on_wait_done(const WaitResult& result) noexcept override { post(result.id, result); }
  void deliver_report(SessionId asker, std::shared_ptr<const ReportPiece> piece) override {
    post(asker, std::move(piece));
  }
  void leave_loss(SessionId client, LostHold lost) noexcept override {
    post(client, std::move(lost));
  }
  void leave_disconnect(SessionId client, OnGone on_gone) override {
    post(client, DisconnectRequest{std::move(on_gone)});
  }

  const std::function<void()> wake_;

  Mutex mutex_;
  std::vector<Letter> letters_ GUARDED_BY(mutex_);
  std::vector<SignalLetter> signals_ GUARDED_BY(mutex_);
  bool is_ending_turn_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockd
