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
#include "server/conversation.h"
#include "signals/signal_hub.h"

namespace lockd {

class Rehearsal final : private Listener, private Mailbox, private Desk {
 public:
  explicit Rehearsal(Options options) : options_(std::move(options)) {}

  Conversation::Service& service() { return service_; }

  // Everything the conversation says when `input` comes in pieces of `piece` bytes.
  std::string play(Conversation& conversation, std::string_view input, std::size_t piece) {
    std::string out;
    std::string unread;
    while (!input.empty() && is_open(conversation)) {
      unread += input.substr(0, piece);
      input.remove_prefix(std::min(piece, input.size()));
      for (std::size_t taken = 1; taken > 0 && is_open(conversation);) {
        taken = conversation.take_in(unread, out);
        unread.erase(0, taken);
        batch_.commit();
        answer(conversation, out);
      }
    }
    return out;
  }

 private:
  // Signals are not pushed: when they come depends on the pieces.
  void deliver(std::span<const std::uint64_t>,
               const std::shared_ptr<const Signal>&) noexcept override {}
  void settled(const Settled& settled) noexcept override { settled_.push_back(settled); }
  void ask(SessionId, Report) override { asked_ = true; }
  void watch_events(SessionId) override {}
  void abandon(SessionId, Kind, std::string_view, std::string_view) override {}

  static bool is_open(const Conversation& conversation) {
    return conversation.fate() == Conversation::Fate::open && !conversation.blocked();
  }

  // Whatever it waits for comes; what would take too long is given up. A stream stays.
  void answer(Conversation& conversation, std::string& out) {
    if (std::exchange(asked_, false)) conversation.report("{}", out);
    if (!conversation.blocked() || !settled_.empty()) return tell(conversation, out);
    clock_.advance(std::chrono::seconds(2));
    engine_.sweep();
    tell(conversation, out);
    if (!conversation.blocked()) return;
    conversation.drain(out);
    batch_.commit();
    tell(conversation, out);
  }

  void tell(Conversation& conversation, std::string& out) {
    if (settled_.empty()) return;
    for (const Settled& settled : std::exchange(settled_, {})) conversation.settled(settled, out);
  }

  const Options options_;
  ManualClock clock_;
  Engine engine_{{.shards = 1, .keys_max = 4, .clock = &clock_, .sweeper = false, .hash_seed = 1}};
  SignalHub hub_;
  Batch batch_{engine_};
  TokenSource secrets_;
  WorkerFigures figures_;
  std::vector<Settled> settled_;
  bool asked_ = false;
  Conversation::Service service_{.options = options_,
                                 .hub = hub_,
                                 .engine = engine_,
                                 .batch = batch_,
                                 .secrets = secrets_,
                                 .listener = *this,
                                 .desk = *this,
                                 .figures = figures_,
                                 .mailbox = hub_.attach(*this),
                                 .unix_ms = [] { return std::int64_t{1'700'000'000'000}; },
                                 .date = "Sun, 06 Nov 1994 08:49:37 GMT"};
};

}  // namespace lockd
