// A conversation rehearsed: all that a worker gives it, by hand, on one thread, with a clock that
// moves only while it waits. For fuzz targets and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/batch.h"
#include "lockd/clock.h"
#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "server/session/server_session.h"

namespace lockd {

class SessionHarness final : private Listener, private Mailbox, private Desk {
 public:
  explicit SessionHarness(Options options) : options_(std::move(options)) {}

  SessionContext& context() { return context_; }

  // Everything the conversation says when `input` comes in pieces of `piece` bytes.
  std::string play(ServerSession& session, std::string_view input, std::size_t piece) {
    std::string out;
    std::string unread;
    while (!input.empty() && is_open(session)) {
      unread += input.substr(0, piece);
      input.remove_prefix(std::min(piece, input.size()));
      for (std::size_t taken = 1; taken > 0 && is_open(session);) {
        taken = session.take_in(unread, out);
        unread.erase(0, taken);
        batch_.commit();
        answer(session, out);
      }
    }
    return out;
  }

 private:
  // Signals are not pushed: when they come depends on the pieces.
  void deliver(std::span<const std::uint64_t>,
               const std::shared_ptr<const Signal>&) noexcept override {}
  void on_wait_done(const WaitResult& settled) noexcept override { settled_.push_back(settled); }
  void ask(SessionId, ReportRequest) override { asked_ = true; }
  void watch_events(SessionId) override {}
  void abandon(SessionId, Kind, std::string_view, std::string_view) override {}

  static bool is_open(const ServerSession& session) {
    return session.fate() == ServerSession::Fate::open && !session.blocked();
  }

  // Whatever it waits for comes; what would take too long is given up. A stream stays.
  void answer(ServerSession& session, std::string& out) {
    if (std::exchange(asked_, false)) session.report("{}", out);
    if (!session.blocked() || !settled_.empty()) return tell(session, out);
    clock_.advance(std::chrono::seconds(2));
    engine_.sweep();
    tell(session, out);
    if (!session.blocked()) return;
    session.drain(out);
    batch_.commit();
    tell(session, out);
  }

  void tell(ServerSession& session, std::string& out) {
    if (settled_.empty()) return;
    for (const WaitResult& settled : std::exchange(settled_, {}))
      session.on_wait_done(settled, out);
  }

  const Options options_;
  ManualClock clock_;
  Engine engine_{{.shards = 1, .keys_max = 4, .clock = &clock_, .sweeper = false, .hash_seed = 1}};
  SignalHub hub_;
  Batch batch_{engine_};
  TokenSource secrets_;
  WorkerStats stats_;
  std::vector<WaitResult> settled_;
  bool asked_ = false;
  SessionContext context_{.options = options_,
                          .hub = hub_,
                          .engine = engine_,
                          .batch = batch_,
                          .secrets = secrets_,
                          .listener = *this,
                          .desk = *this,
                          .stats = stats_,
                          .mailbox = hub_.attach(*this),
                          .unix_ms = [] { return std::int64_t{1'700'000'000'000}; },
                          .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
};

}  // namespace lockd
