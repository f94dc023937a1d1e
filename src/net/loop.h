// One thread's event loop, in turns.
//
// A turn runs what is ready, up to a bound, and then calls the end of the turn once: there the work
// of the whole turn is committed, and every connection that was touched is written to once.
//
// Only the loop's own thread touches it, but for post() and stop().
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <utility>

namespace lockd {

class Loop {
 public:
  using Executor = boost::asio::io_context::executor_type;

  Loop();

  // Runs turns until stop(). `end_turn` is called after each; `tick` about every kTick.
  void run(const std::function<void()>& end_turn, const std::function<void()>& tick);

  // Any thread. `handler` runs on the loop's thread, in a turn.
  template <typename Handler>
  void post(Handler handler) {
    boost::asio::post(context_, std::move(handler));
  }
  // Any thread. The turn that runs is the last.
  void stop() { context_.stop(); }

  boost::asio::io_context& context() { return context_; }

  // When the present turn began. Coarse: for timeouts, never for leases.
  std::chrono::steady_clock::time_point turn_time() const { return turn_time_; }

  // Memory that one handler at a time may use while it runs: for what came from the wire, and for
  // what TLS made of it.
  std::array<char, 64 * 1024>& scratch() { return scratch_; }
  std::array<char, 16 * 1024>& plain() { return plain_; }

  static constexpr std::chrono::milliseconds kTick{50};

 private:
  void arm_tick(const std::function<void()>& tick);

  boost::asio::io_context context_;
  boost::asio::steady_timer tick_timer_;
  std::chrono::steady_clock::time_point turn_time_;
  std::array<char, 64 * 1024> scratch_;
  std::array<char, 16 * 1024> plain_;
};

}  // namespace lockd
