#include "lockctl/run/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

// SIGPIPE is left alone: whoever reads our output no more has no use for us. So are limits of the
// system's, which are for us and not for a child.
constexpr int kLeftAlone[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT,
                              SIGSYS,  SIGPIPE, SIGXCPU, SIGXFSZ, SIGPROF};

}  // namespace

SignalSource::SignalSource() {
  // An ignored SIGCHLD, which can be inherited, would reap our child behind our back.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t taken;
  ::sigfillset(&taken);
  for (const int number : kLeftAlone) ::sigdelset(&taken, number);
  // What was ignored when we began, as by nohup, is not for us; once blocked it would be queued.
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    const bool known = ::sigaction(number, nullptr, &action) == 0;
    if (known && action.sa_handler == SIG_IGN) ::sigdelset(&taken, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &taken, &original_mask_);
  descriptor_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) {
    throw Failure(kExitSystem, "signalfd: " + std::generic_category().message(errno));
  }
}

SignalSource::~SignalSource() {
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

std::optional<ReceivedSignal> SignalSource::next() const {
  signalfd_siginfo received{};
  if (::read(descriptor_, &received, sizeof received) != sizeof received) return std::nullopt;
  return ReceivedSignal{.number = static_cast<int>(received.ssi_signo),
                        .sender = static_cast<pid_t>(received.ssi_pid),
                        .from_kernel = received.ssi_code == SI_KERNEL};
}

SignalStop::SignalStop(const SignalSource& signals, int pipe)
    : signals_(signals), pipe_(pipe), thread_([this] { watch(); }) {}

int SignalStop::finish() {
  if (thread_.joinable()) {
    done_.set();
    thread_.join();
  }
  return signal_;
}

void SignalStop::watch() {
  while (signal_ == 0) {
    pollfd watched[] = {{.fd = done_.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = pipe_, .events = 0, .revents = 0}};
    ::poll(watched, std::size(watched), -1);
    if (watched[0].revents != 0) return;
    if (has_no_reader(watched[2].revents)) {
      signal_ = SIGPIPE;
      break;
    }
    const auto signal = signals_.next();
    if (!signal || is_harmless(signal->number)) continue;
    if (is_stop(signal->number)) {
      ::kill(::getpid(), SIGSTOP);  // ^Z, as if it had not been blocked
    } else {
      signal_ = signal->number;
    }
  }
  stop_.request_stop();
}

}  // namespace lockd::cli
