#include "net/loop.h"

#include <boost/asio/executor_work_guard.hpp>

namespace lockd {
namespace {

// How much one turn takes in before what it did is sent: enough to share a commit and a write, not
// so much that the first waits for the last.
constexpr int kHandlersPerTurn = 256;
constexpr std::chrono::milliseconds kTurnMax{1};

}  // namespace

// I/O objects are touched by their own thread only, which the hint says; post() from another stays
// legal, which the fully unsafe hint would forbid.
Loop::Loop() : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), tick_timer_(context_) {}

void Loop::run(const std::function<void()>& end_turn, const std::function<void()>& tick) {
  const auto work = boost::asio::make_work_guard(context_);
  arm_tick(tick);
  while (context_.run_one() > 0) {
    turn_time_ = std::chrono::steady_clock::now();
    for (int handlers = 1; handlers < kHandlersPerTurn && context_.poll_one() > 0; ++handlers) {
      if (handlers % 16 == 0 && std::chrono::steady_clock::now() - turn_time_ > kTurnMax) break;
    }
    end_turn();
  }
}

void Loop::arm_tick(const std::function<void()>& tick) {
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this, &tick](const boost::system::error_code& error) {
    if (error) return;
    tick();
    arm_tick(tick);
  });
}

}  // namespace lockd
