#include "lockctl/run/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

namespace lockd::cli {
namespace {

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

const ChildCommand kTrue{.words = {"true"}, .environment = {"PATH=/usr/bin:/bin"}};

TEST(ChildProcess, HasWhatItsGroupWasSentJustBeforeItWasThere) {
  const SignalSource signals;
  ::pthread_kill(::pthread_self(), SIGTERM);
  const int status = wait_for(start_child(kTrue, signals));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  const auto next = signals.next();
  EXPECT_TRUE(!next || next->number == SIGCHLD) << "it was passed on";
}

TEST(ChildProcess, BeginsWhenNothingWasSent) {
  const SignalSource signals;
  EXPECT_EQ(wait_for(start_child(kTrue, signals)), 0);
}

}  // namespace
}  // namespace lockd::cli
