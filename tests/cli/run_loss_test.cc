// A lock that is lost in the middle: the command is stopped, with all that it started.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cli/lockctl.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Seconds: not over before the command has begun, on a machine that stalls.
constexpr const char* kTtl = "5";

// Each command has its own lock. They lose their locks together when the server stays away for
// longer than their leases.
TEST(RunLoss, AServerThatIsGoneForLongerThanTheLease) {
  ServerProcess server;
  const auto start = [&](const Words& key, const std::string& script) {
    return std::make_unique<Lockctl>(
        run(server, joined({"--ttl", kTtl}, joined(key, {"-c", script}))));
  };
  const std::string wait = "echo pid=$$; while :; do sleep 0.02; done";
  const auto polite = start({"polite"}, "trap 'echo stopping; exit 0' TERM; " + wait);
  const auto hurried = start({"--grace", "0", "hurried"}, "trap 'echo stopping' TERM; " + wait);
  const auto stopped = start({"stopped"}, "echo pid=$$; exec sleep 600");
  // The shell waits for a child of its own; another has left it, and has a session of its own.
  const auto parent = start({"parent"},
                            "(setsid sleep 601 & echo far=$!) ; sleep 600 & echo near=$!; "
                            "echo pid=$$; wait");
  for (const auto* process : {&polite, &hurried, &stopped, &parent})
    (*process)->await_output("pid=");
  const pid_t child = pid_behind(stopped->output(), "pid=");
  ::kill(child, SIGSTOP);  // by another process: lockctl does not stop with it
  server.kill();
  for (const auto* process : {&polite, &hurried, &stopped, &parent}) {
    EXPECT_EQ((*process)->await_exit(), 79);
    EXPECT_TRUE(await_death(pid_behind((*process)->output(), "pid=")));
  }
  EXPECT_TRUE(has(polite->output(), "stopping")) << polite->output();
  EXPECT_TRUE(has(polite->errors(), "the lock on 'polite' is lost")) << polite->errors();
  EXPECT_FALSE(has(hurried->output(), "stopping")) << "no grace is none";
  for (const char* who : {"near=", "far="}) {
    EXPECT_TRUE(await_death(pid_behind(parent->output(), who))) << who;
  }
}

// Long before the lease is over.
TEST(RunLoss, AnAdminWhoEndsIt) {
  ServerProcess server;
  const std::string address = address_of(server);
  Lockctl process(
      run(server, {"--ttl", "3600", "--name", "ann@build-7", "--note", "nightly", "k", "-c",
                   "trap 'echo told; exit 0' TERM; echo ready; "
                   "while :; do sleep 0.02; done"}));
  process.await_output("ready");
  const Finished shown = lockctl({"describe", "-s", address, "k"});
  EXPECT_TRUE(has(shown.output, "ann@build-7")) << shown.output;
  EXPECT_TRUE(has(shown.output, "nightly")) << shown.output;
  const Finished clients = lockctl({"clients", "-s", address, "ann@"});
  EXPECT_TRUE(has(clients.output, "ann@build-7")) << clients.output;
  EXPECT_EQ(lockctl({"release", "-s", address, "--force", "k", "--reason", "x", "--yes"}).status,
            0);
  process.await_output("told");
  EXPECT_EQ(process.await_exit(), 79);
  EXPECT_TRUE(has(process.errors(), "the lock on 'k' is lost: an admin has ended it"))
      << process.errors();
}

TEST(RunLoss, ALeaseThatEndsWhileLockctlIsStoppedEndsTheCommandAfterItsGrace) {
  ServerProcess server;
  Lockctl process(
      run(server, {"--ttl", kTtl, "--grace", "0.5", "k", "-c",
                   "trap 'echo told' TERM; echo pid=$$; while :; do sleep 0.02; done"}));
  process.await_output("pid=");
  process.signal(SIGSTOP);
  LineClient next = server.connect();
  EXPECT_EQ(masked(next.ask(request("l", "k", "60 600"))), "ok <token> 600");
  // Nobody is told before lockctl goes on.
  EXPECT_TRUE(is_alive(pid_behind(process.output(), "pid=")));
  const auto before = SteadyClock::now();
  process.signal(SIGCONT);
  process.await_output("told");
  EXPECT_EQ(process.await_exit(), 79);
  EXPECT_GE(SteadyClock::now() - before, 500ms);
  EXPECT_TRUE(await_death(pid_behind(process.output(), "pid=")));
  EXPECT_EQ(next.ask(request("l", "k", "0 1")), "timeout") << "the other's lock is untouched";
}

TEST(RunLoss, ALockThatSomebodyReleased) {
  ServerProcess server;
  Lockctl process(run(server, {"--ttl", kTtl, "k", "-c",
                               "echo \"token=$LOCKD_TOKEN.\"; while :; do sleep 0.02; done"}));
  process.await_output(".");
  const std::string out = process.output();
  const std::string token = out.substr(out.find('=') + 1, 32);
  const Finished released = lockctl({"release", "-s", address_of(server), "k", token});
  EXPECT_EQ(released.status, 0) << released.errors;
  EXPECT_EQ(process.await_exit(), 79);
  EXPECT_EQ(lockctl({"release", "-s", address_of(server), "k", token}).status, 1);
}

TEST(RunLoss, ALeaseIsRenewedForAsLongAsTheCommandRuns) {
  ServerProcess server;
  const auto start = SteadyClock::now();
  EXPECT_EQ(lockctl(run(server, {"--ttl", kTtl, "k", "sleep", "6"})).status, 0);
  EXPECT_GE(SteadyClock::now() - start, 6s);
}

}  // namespace
}  // namespace lockd
