// lockctl hold: a lock for as long as somebody has the other end of standard output open.
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include "lockctl/commands/commands.h"
#include "lockctl/commands/take_lock.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/run/signals.h"
#include "lockd/client/held_lock.h"

namespace lockd::cli {
namespace {

// A process to be told of the loss. It is named once, while it is there for certain, so that nobody
// is hit who has its number later.
class ProcessToTell {
 public:
  explicit ProcessToTell(std::optional<std::uint64_t> pid) {
    if (!pid) return;
    // The C library of Debian 12 declares neither call in a way that C++ can link.
    descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0));
    if (descriptor_ < 0) {
      throw Failure(kExitUsage, "--kill " + std::to_string(*pid) + ": " +
                                    std::generic_category().message(errno));
    }
  }
  ~ProcessToTell() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ProcessToTell(const ProcessToTell&) = delete;
  ProcessToTell& operator=(const ProcessToTell&) = delete;

  void tell() const {
    if (descriptor_ >= 0) ::syscall(SYS_pidfd_send_signal, descriptor_, SIGTERM, nullptr, 0);
  }

 private:
  int descriptor_ = -1;
};

bool is_pipe(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Why there is no more reason to hold the lock.
struct HoldEnd {
  bool is_lost = false;
  int signal = 0;  // neither: nobody reads any more
};

class Holding {
 public:
  Holding(const client::HeldLock& lock, const SignalSource& signals, const EventFd& news)
      : lock_(lock), signals_(signals), news_(news), has_reader_(is_pipe(STDOUT_FILENO)) {}

  HoldEnd await_end() const {
    for (;;) {
      pollfd watched[] = {{.fd = STDOUT_FILENO, .events = 0, .revents = 0},
                          {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0},
                          {.fd = news_.descriptor(), .events = POLLIN, .revents = 0}};
      ::poll(watched, std::size(watched), -1);
      news_.clear();
      int ending = 0;
      while (const auto signal = signals_.next())
        ending = ends_by(*signal) ? signal->number : ending;
      if (is_lost(lock_)) return {.is_lost = true};
      if ((watched[2].revents & POLLIN) != 0) say_if_suspect();
      if (has_no_reader(watched[0].revents)) return {};
      if (ending != 0) return {.signal = ending};
    }
  }

 private:
  void say_if_suspect() const {
    const auto why = lock_.loss();
    if (why) say(name_of(lock_) + " is suspect: " + client::describe(*why));
  }

  // What the terminal sends has reached the script as well: whether that ends is its own affair,
  // and the lock is its until it does.
  bool ends_by(const ReceivedSignal& signal) const {
    if (is_harmless(signal.number)) return false;
    if (is_stop(signal.number)) {
      ::kill(::getpid(), SIGSTOP);
      return false;
    }
    return !(has_reader_ && signal.from_kernel);
  }

  const client::HeldLock& lock_;
  const SignalSource& signals_;
  const EventFd& news_;
  const bool has_reader_;
};

int tell_of_loss(const ProcessToTell& process, const client::HeldLock& lock,
                 const client::Status& why) {
  say(name_of(lock) + " is lost: " + client::describe(why));
  process.tell();
  return kExitLost;
}

int hold(const Invocation& invocation, const ProcessToTell& process, const SignalSource& signals) {
  const EventFd news;
  TakenLock taken = take_lock(invocation, signals, news, STDOUT_FILENO);
  if (!taken.lock) return taken.status;
  client::HeldLock& lock = *taken.lock;
  invocation.output.line(std::to_string(lock.fence()));
  const HoldEnd end = Holding(lock, signals, news).await_end();
  if (end.is_lost) return tell_of_loss(process, lock, lock.loss().value_or(client::Status{}));
  const client::Status released = lock.release();
  if (exit_code_of(released.outcome) == kExitLost || is_lost(lock)) {
    return tell_of_loss(process, lock, released);
  }
  if (end.signal == 0) return kExitOk;
  process.tell();
  return kExitSignal + end.signal;
}

}  // namespace

int execute_hold(const Invocation& invocation) {
  // The script may have the other ends of other locks open: they are not ours to keep open.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  const ProcessToTell process(invocation.arguments.whole("kill"));
  const SignalSource signals;  // before the client has its thread
  return hold(invocation, process, signals);
}

}  // namespace lockd::cli
