#include "client/renewer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "client/calls.h"
#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Where descriptors cannot be watched, all are looked at this often.
constexpr auto kPauseWithoutPoll = 20ms;

// Signals stay with the program's own threads: a thread inherits what is blocked where it is made.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

timespec to_timespec(BootClock::time_point time) {
  const auto since = std::max(time.time_since_epoch(), BootClock::duration(1));  // 0 would disarm
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  return {.tv_sec = whole.count(), .tv_nsec = (since - whole).count()};
}

}  // namespace

Renewer::Renewer(Duration release_timeout)
    : release_timeout_(release_timeout),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

Renewer::~Renewer() {
  if (wake_fd_ >= 0) ::close(wake_fd_);
  if (timer_ >= 0) ::close(timer_);
}

// The thread has a share in the Renewer, and so has every owner's share: whoever lets go of the
// last of those stops the thread, which may be the one that it runs on.
std::shared_ptr<Renewer> Renewer::start(Duration release_timeout) {
  const std::shared_ptr<Renewer> made(new Renewer(release_timeout));
  if (made->wake_fd_ < 0 || made->timer_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch what is held");
  }
  {
    const AllSignalsBlocked blocked;
    made->thread_ = std::thread([made] { made->run(); });
  }
  made->thread_id_ = made->thread_.get_id();
  return {made.get(), [made](Renewer* renewer) { renewer->stop(); }};
}

void Renewer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (on_own_thread()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Renewer::run() {
  Watch watch;
  while (advance_all(watch)) {
    if (!notify_one()) wait(watch);
  }
}

bool Renewer::advance_all(Watch& watch) {
  MutexLock lock(mutex_);
  const auto now = BootClock::now();
  watch.descriptors.assign(
      {pollfd{.fd = wake_fd_, .events = POLLIN}, pollfd{.fd = timer_, .events = POLLIN}});
  watch.until = kNever;
  for (auto renewal = renewals_.begin(); renewal != renewals_.end();) {
    // A descriptor that has changed hands meanwhile makes one advance for nothing.
    const auto interests = renewal->interests();
    const bool is_ready = std::any_of(interests.begin(), interests.end(), [&](pollfd interest) {
      return std::binary_search(watch.ready.begin(), watch.ready.end(), interest.fd);
    });
    const bool has_news = is_ready || now >= renewal->deadline();
    if (auto loss = has_news ? renewal->advance(now) : std::nullopt) {
      renewal->hold()->lose(std::move(*loss));
      losses_.withdraw(*renewal->hold());  // replaces a pending suspicion
      losses_.add(renewal->hold());
      renewal = renewals_.erase(renewal);
      continue;
    }
    if (renewal->take_suspicion()) losses_.add(renewal->hold());
    for (const pollfd& interest : renewal->interests()) {
      if (interest.fd >= 0) watch.descriptors.push_back(interest);
    }
    watch.until = std::min(watch.until, renewal->deadline());
    ++renewal;
  }
  watch.ready.clear();
  return !stopping_;
}

bool Renewer::notify_one() {
  return losses_.notify_one([](Hold& hold) {
    if (const auto loss = hold.loss()) {
      hold.lost.request_stop();
      if (hold.terms.on_lost) hold.terms.on_lost(*loss);
    } else if (hold.terms.on_suspect && hold.is_suspect) {
      hold.terms.on_suspect(hold.suspicion());
    }
  });
}

void Renewer::wait(Watch& watch) const {
  if (watch.until <= BootClock::now()) return;
  itimerspec alarm{};
  if (watch.until != kNever) alarm.it_value = to_timespec(watch.until);
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &alarm, nullptr);
  // The system watches no more descriptors than may be open, which can be fewer than are.
  const bool can_watch = ::poll(watch.descriptors.data(), watch.descriptors.size(), -1) >= 0;
  if (!can_watch) std::this_thread::sleep_for(kPauseWithoutPoll);
  for (const pollfd& watched : watch.descriptors) {
    if (!can_watch || watched.revents != 0) watch.ready.push_back(watched.fd);
  }
  std::sort(watch.ready.begin(), watch.ready.end());
  eventfd_t count = 0;
  ::eventfd_read(wake_fd_, &count);
}

void Renewer::wake() const { ::eventfd_write(wake_fd_, 1); }

HeldLock Renewer::keep(const std::shared_ptr<Renewer>& renewer, std::shared_ptr<Hold> hold,
                       std::unique_ptr<LineConnection> connection) {
  {
    MutexLock lock(renewer->mutex_);
    renewer->renewals_.emplace_back(hold, std::move(connection));
  }
  renewer->wake();
  return HeldLock(renewer, std::move(hold));
}

Status Renewer::release(Hold& hold) {
  std::unique_ptr<LineConnection> connection = withdraw(hold);
  if (auto loss = hold.loss()) return *loss;
  if (auto before = hold.release()) return *before;
  Status status{Outcome::unsure};
  if (hold.certainty.end(BootClock::now())) {
    status = tell_server(hold, std::move(connection));
  }
  hold.set_release(status);
  return status;
}

// Afterwards the hold is not renewed and its owner is not notified, unless the notification itself
// calls this.
std::unique_ptr<LineConnection> Renewer::withdraw(Hold& hold) {
  std::unique_ptr<LineConnection> connection;
  {
    MutexLock lock(mutex_);
    const auto renewal = std::find_if(renewals_.begin(), renewals_.end(), [&](const Renewal& one) {
      return one.hold().get() == &hold;
    });
    if (renewal != renewals_.end()) {
      connection = renewal->take_connection();
      renewals_.erase(renewal);
      wake();
    }
  }
  losses_.withdraw(hold);
  return connection;
}

Status Renewer::tell_server(Hold& hold, std::unique_ptr<LineConnection> connection) const {
  const auto now = BootClock::now();
  const auto deadline = later(now, release_timeout_);
  const auto lines = hold.claim().release_lines(hold.grant);
  const ReadStatus read_status = hold.claim().read_status();
  const auto& cluster = hold.terms.cluster;
  const auto reply_until = cluster->is_alone() ? deadline : later(now, release_timeout_ / 2);
  const bool was_ready = connection && connection->is_ready();
  const auto reply =
      ask_by_token(cluster, connection.get(), {.lines = lines, .read_status = read_status},
                   reply_until, deadline, {});
  Status status = reply ? read_status(reply->line) : static_cast<const Status&>(reply);
  if (!says_gone(status)) return status;
  const auto loss = connection ? connection->take_loss_of(hold.grant.token) : std::nullopt;
  if (loss) return status_of(*loss);
  // A first release whose answer was lost may have been what released it.
  if (was_ready && connection->is_closed()) return {};
  return {Outcome::lost,
          "the server says that " + hold.claim().gone_in(reply->line) + " was held no more"};
}

}  // namespace lockd::client
