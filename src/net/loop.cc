#include "net/loop.h"

#include <boost/asio/executor_work_guard.hpp>

namespace lockd {
namespace {

// How much one turn takes in before what it did is sent: enough to share a commit and a write, not
// so much that the first waits for the last.
constexpr int kHandlersPerTurn = 256;
constexpr std::chrono::milliseconds kTurnMax{1};
// How long slow work may go on between two turns, but for the step that is under way.
constexpr std::chrono::milliseconds kSlowWorkMax{1};

}  // namespace

// I/O objects are touched by their own thread only, which the hint says; post() from another stays
// legal, which the fully unsafe hint would forbid.
Loop::Loop()
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      tick_timer_(context_),
      readiness_(context_, ::epoll_create1(EPOLL_CLOEXEC)) {}

bool Loop::watch(int descriptor, Watched& watched) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watched;
  return ::epoll_ctl(readiness_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Loop::await_readiness() {
  readiness_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                        [this](const boost::system::error_code& error) {
                          if (error) return;
                          tell_what_is_ready();
                          await_readiness();
                        });
}

// What is ready together belongs to one turn, which ends with it.
void Loop::tell_what_is_ready() {
  turn_time_ = std::chrono::steady_clock::now();
  const int ready =
      ::epoll_wait(readiness_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    static_cast<Watched*>(event.data.ptr)->on_ready(event.events);
  }
  turn_is_full_ = true;
}

void Loop::run(const std::function<void()>& end_turn, const std::function<void()>& tick) {
  const auto work = boost::asio::make_work_guard(context_);
  arm_tick(tick);
  await_readiness();
  while (context_.run_one() > 0) {
    if (!turn_is_full_) turn_time_ = std::chrono::steady_clock::now();
    for (int handlers = 1; handlers < kHandlersPerTurn && !turn_is_full_ && context_.poll_one() > 0;
         ++handlers) {
      if (handlers % 16 == 0 && std::chrono::steady_clock::now() - turn_time_ > kTurnMax) break;
    }
    end_turn();
    turn_is_full_ = false;
    do_slow_work();
  }
}

void Loop::queue(SlowWork& work) {
  if (!work.queued_.linked()) slow_work_.push_back(&work);
}

void Loop::unqueue(SlowWork& work) {
  if (work.queued_.linked()) slow_work_.remove(&work);
}

// A step may have given a turn something to end; and what is left waits for one.
void Loop::do_slow_work() {
  if (slow_work_.empty()) return;
  turn_time_ = std::chrono::steady_clock::now();
  do {
    slow_work_.pop_front()->do_slow_work();
  } while (!slow_work_.empty() && std::chrono::steady_clock::now() - turn_time_ < kSlowWorkMax);
  post([] {});
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
