// One thread's event loop, in turns.
//
// A turn runs what is ready, up to a bound, and then calls the end of the turn once: there the work
// of the whole turn is committed, and every connection that was touched is written to once. What
// takes long by itself is slow work: between two turns some of it is done, first come, first
// served, and those who are quick to serve wait for no more than that.
//
// Only the loop's own thread touches it, but for post() and stop().
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "base/list.h"

namespace lockd {

class Loop {
 public:
  using Executor = boost::asio::io_context::executor_type;

  Loop();

  // Is told when its descriptor may be read or written.
  class Watched {
   public:
    virtual void on_ready(unsigned events) = 0;  // of epoll

   protected:
    ~Watched() = default;
  };
  // Until the descriptor is closed; `watched` must then live to the end of the turn. Readiness is
  // told when it changes, as by EPOLLET. False when the system cannot watch any more.
  //
  // Not by Asio's handlers: each would cost a system call to ask for the next one.
  bool watch(int descriptor, Watched& watched);

  // Has something to do that is long for a turn, as the arithmetic of a handshake is.
  class SlowWork {
   public:
    // Between two turns. One step; for another it queues again.
    virtual void do_slow_work() = 0;

   protected:
    ~SlowWork() = default;

   private:
    friend class Loop;
    ListHook<SlowWork> queued_;
  };
  // Nothing happens when it is queued already, or when it is not.
  void queue(SlowWork& work);
  void unqueue(SlowWork& work);

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
  void await_readiness();
  void tell_what_is_ready();
  void do_slow_work();

  boost::asio::io_context context_;
  boost::asio::steady_timer tick_timer_;
  // An epoll of our own, which is one descriptor to Asio.
  boost::asio::posix::basic_stream_descriptor<Executor> readiness_;
  std::array<epoll_event, 64> events_;  // of one turn
  bool turn_is_full_ = false;
  List<SlowWork, &SlowWork::queued_> slow_work_;
  std::chrono::steady_clock::time_point turn_time_;
  std::array<char, 64 * 1024> scratch_;
  std::array<char, 16 * 1024> plain_;
};

}  // namespace lockd
