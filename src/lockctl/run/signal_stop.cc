#include "lockctl/run/signal_stop.h"

#include <poll.h>
#include <unistd.h>

namespace lockd::cli {
namespace {

// What would not have ended us if we had left it to the system.
bool is_harmless(int number) {
  return number == SIGCHLD || number == SIGWINCH || number == SIGCONT || number == SIGURG;
}

}  // namespace

SignalStop::SignalStop(const SignalSource& signals)
    : signals_(signals), thread_([this] { watch(); }) {}

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
                        {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
    ::poll(watched, std::size(watched), -1);
    if (watched[0].revents != 0) return;
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
