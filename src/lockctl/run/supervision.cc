#include "lockctl/run/supervision.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "lockctl/output/failure.h"
#include "lockctl/run/child_process.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How often a suspect lock is checked: there is no notification when it is held again.
constexpr int kSuspectPauseMs = 100;

class Supervision {
 public:
  Supervision(pid_t child, const SignalSource& signals, const LockGuard& guard, Duration grace)
      : child_(child), signals_(signals), guard_(guard), grace_(grace) {}

  ChildExit run() {
    reap();  // it may have ended while it was started, and nobody reads of that any more
    while (!ended_) {
      await_something();
      while (const auto signal = signals_.next()) take(*signal);
      reap();
      // Also what it did just before it ended must have been done with the guard.
      check_guard();
    }
    if (ending_.lost) kill_the_rest();
    if (is_paused_) signal_descendants(SIGCONT);
    return ending_;
  }

 private:
  void await_something() const {
    pollfd watched[] = {{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = guard_.news.descriptor(), .events = POLLIN, .revents = 0}};
    int timeout = is_paused_ ? kSuspectPauseMs : -1;
    if (kill_at_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
      timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
    }
    ::poll(watched, std::size(watched), timeout);
    guard_.news.clear();
  }

  void take(const ReceivedSignal& signal) {
    if (signal.number == SIGCHLD || signal.sender == child_) return;
    if (signal.number == SIGTSTP) asked_to_stop_ = true;
    if (signal.number == SIGCONT) asked_to_stop_ = false;
    const bool child_has_it = signal.from_kernel && ::getpgid(child_) == ::getpgrp();
    if (!child_has_it) ::kill(child_, signal.number);
  }

  // Everybody who has ended, orphans that became ours included; and whether the child has stopped.
  void reap() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (pid != child_) continue;
      if (WIFSTOPPED(status)) {
        follow_stop(WSTOPSIG(status));
      } else {
        ending_.status = status;
        ended_ = true;
      }
    }
  }

  // An editor that cleans up before it stops uses SIGSTOP. One that somebody else sends to the
  // child alone is no reason for us to let the lease run out.
  void follow_stop(int number) {
    const bool by_terminal = is_stop(number) || (number == SIGSTOP && asked_to_stop_);
    if (!by_terminal || ending_.lost) return;
    asked_to_stop_ = false;
    ::kill(::getpid(), SIGSTOP);
    // We have been continued. The shell has continued the child as well, unless it meant us alone.
    if (guard_.is_held()) ::kill(child_, SIGCONT);
  }

  void check_guard() {
    if (!ending_.lost && guard_.is_lost()) {
      ending_.lost = true;
      is_paused_ = false;
      guard_.on_loss();
      if (grace_ == Duration::zero()) return signal_descendants(SIGKILL);
      signal_descendants(SIGTERM);
      signal_descendants(SIGCONT);  // what is stopped could not end
      const Duration longest = std::chrono::hours(24 * 365);
      kill_at_ = Clock::now() + std::min(grace_, longest);
    }
    if (!ending_.lost && !ended_) pause_while_suspect();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      kill_at_.reset();
      signal_descendants(SIGKILL);
    }
  }

  void pause_while_suspect() {
    if (guard_.is_held() != is_paused_) return;
    is_paused_ = !is_paused_;
    guard_.on_suspect(is_paused_);
    signal_descendants(is_paused_ ? SIGSTOP : SIGCONT);
  }

  // The child has ended; what it started may ask for the rest of the grace, and then must go. Again
  // and again, as a process may fork while we look.
  void kill_the_rest() const {
    while (!descendants().empty() && kill_at_ && Clock::now() < *kill_at_) wait_a_little();
    for (int rounds = 0; rounds < 100 && !descendants().empty(); ++rounds) {
      signal_descendants(SIGKILL);
      wait_a_little();
    }
  }

  static void wait_a_little() {
    std::this_thread::sleep_for(10ms);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  const pid_t child_;
  const SignalSource& signals_;
  const LockGuard& guard_;
  const Duration grace_;
  ChildExit ending_;
  bool ended_ = false;
  bool is_paused_ = false;      // while a lock is suspect
  bool asked_to_stop_ = false;  // by ^Z, and not continued since
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

ChildExit supervise(pid_t child, const SignalSource& signals, const LockGuard& guard,
                    Duration grace) {
  return Supervision(child, signals, guard, grace).run();
}

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? kExitSignal + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace lockd::cli
