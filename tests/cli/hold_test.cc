// lockctl hold: a lock that a script has for as long as a descriptor is open.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "cli/lockctl.h"

namespace lockd {
namespace {

class HoldTest : public testing::Test {
 protected:
  // What starts a bash that finds the server, and lockctl as $LOCKCTL.
  Lockctl::Launch in_bash(bool terminal = false) const {
    return {.environment = {"LOCKD_SERVERS=" + address_of(server_), "LOCKCTL=" + path_of_lockctl()},
            .terminal = terminal,
            .program = "/bin/bash"};
  }
  Finished bash(const std::string& script) const { return lockctl({"-c", script}, in_bash()); }

  void expect_held(const std::string& key) {
    EXPECT_EQ(server_.connect().ask(request("l", key, "0 5")), "timeout") << key;
  }
  void expect_let_go(const std::string& key) {
    EXPECT_EQ(masked(server_.connect().ask(request("l", key, "30 5"))), "ok <token> 5") << key;
  }

  ServerProcess server_;
};

const std::string kTake = "exec 9< <($LOCKCTL hold k); read -r fence <&9 || exit 9; ";

TEST_F(HoldTest, TheRestOfAScriptHasIt) {
  Lockctl script({"-c", kTake + "echo \"fence $fence.\"; while :; do sleep 0.02; done"}, in_bash());
  script.await_output(".");
  EXPECT_GT(std::stoull(script.output().substr(6)), 0U);
  expect_held("k");
  script.signal(SIGKILL);  // however it ends
  expect_let_go("k");
}

TEST_F(HoldTest, AnAdminEndsIt) {
  Lockctl holder({"hold", "-s", address_of(server_), "--ttl", "3600", "--name", "ann", "k"});
  holder.await_output("\n");
  EXPECT_TRUE(has(lockctl({"clients", "-s", address_of(server_)}).output, "ann"));
  lockctl({"release", "-s", address_of(server_), "--force", "k", "--reason", "x", "--yes"});
  EXPECT_EQ(holder.await_exit(), 79);
  EXPECT_EQ(holder.errors(), "lockctl: the lock on 'k' is lost: an admin has ended it\n");
}

TEST_F(HoldTest, ItIsLetGoWithTheDescriptor) {
  const Finished closed = bash(kTake +
                               "$LOCKCTL run -n k true; echo $?; exec 9<&-; wait $!; echo $?; "
                               "$LOCKCTL run -n k true; echo $?");
  EXPECT_EQ(closed.output, "1\n0\n0\n") << closed.errors;
  EXPECT_EQ(closed.errors, "");
}

TEST_F(HoldTest, ABlockHasIt) {
  const Finished block = bash(
      "{ read -r fence <&9 && $LOCKCTL run -n k true; echo $?; } 9< <($LOCKCTL hold k); "
      "$LOCKCTL run -w 30 k true; echo $?");
  EXPECT_EQ(block.output, "1\n0\n") << block.errors;
}

TEST_F(HoldTest, TwoLocksDoNotKeepEachOther) {
  const Finished two = bash(kTake +
                            "first=$!; exec 8< <($LOCKCTL hold other); read -r fence <&8; "
                            "exec 9<&-; wait $first; echo $?; $LOCKCTL run -n k true; echo $?; "
                            "$LOCKCTL run -n other true; echo $?");
  EXPECT_EQ(two.output, "0\n0\n1\n") << two.errors;
}

TEST_F(HoldTest, WhatAScriptLeavesRunningKeepsIt) {
  Lockctl script({"-c", kTake + "sleep 600 & echo pid=$!"}, in_bash());
  EXPECT_EQ(script.await_exit(), 0);
  expect_held("k");
  ::kill(pid_behind(script.output(), "pid="), SIGKILL);
  expect_let_go("k");
}

TEST_F(HoldTest, WhatCannotBeHadHasNothingToRead) {
  LineClient holder = server_.connect();
  holder.ask(request("l", "k", "0 600"));
  const Finished refused =
      bash("$LOCKCTL hold -n -E 42 k | { read -r fence; echo $?; }; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(refused.output, "1\n42\n") << refused.errors;
}

TEST_F(HoldTest, AScriptThatDiesInTheQueueLeavesIt) {
  LineClient holder = server_.connect();
  holder.ask(request("l", "k", "0 600"));
  LineClient watcher = server_.connect();
  Lockctl script({"-c", kTake}, in_bash());
  await_stats(watcher, "\"waiters\":1");
  script.signal(SIGKILL);
  await_stats(watcher, "\"waiters\":0");
}

TEST_F(HoldTest, ALossIsToldInEveryWay) {
  Lockctl script({"-c",
                  "trap 'echo told' TERM; exec 9< <($LOCKCTL hold k --ttl 5 --kill $$); hold=$!; "
                  "read -r fence <&9 || exit 9; read -t 0 -u 9 || echo held; "
                  "until read -t 0 -u 9; do sleep 0.02; done; wait $hold; echo \"status $?\""},
                 in_bash());
  script.await_output("held");
  server_.kill();
  script.await_output("told");
  script.await_output("status 79");
  EXPECT_EQ(script.await_exit(), 0);
  EXPECT_TRUE(has(script.errors(), "lockctl: the lock on 'k' is lost: ")) << script.errors();
}

TEST_F(HoldTest, ASignalLetsItGoAndTellsTheScript) {
  Lockctl script({"-c",
                  "trap 'echo told' TERM; exec 9< <($LOCKCTL hold k --kill $$); hold=$!; "
                  "read -r fence <&9 || exit 9; kill $hold; "
                  "while kill -0 $hold 2>/dev/null; do sleep 0.02; done; "
                  "wait $hold; echo \"$?.\""},
                 in_bash());
  EXPECT_EQ(script.await_exit(), 0);
  EXPECT_EQ(script.output(), "told\n143.\n");
  expect_let_go("k");
}

TEST_F(HoldTest, AProcessThatIsNotThereCannotBeTold) {
  // A pipe, because bash's `wait` for a process substitution that has ended may report -1.
  const char* const script = "$LOCKCTL hold k --kill 2147483647 | cat; echo ${PIPESTATUS[0]}";
  EXPECT_EQ(bash(script).output, "64\n");
}

TEST_F(HoldTest, WhatTheTerminalSendsIsTheScriptsAffair) {
  Lockctl script(
      {"-c", "trap 'echo interrupted' INT; " + kTake + "echo ready; while :; do sleep 0.02; done"},
      in_bash(true));
  script.await_output("ready");
  script.type("\x03");
  script.await_output("interrupted");
  expect_held("k");
  script.signal(SIGKILL);
  expect_let_go("k");
}

TEST_F(HoldTest, OnATerminalItIsHeldUntilItIsInterrupted) {
  Lockctl hold({"hold", "-s", address_of(server_), "k"}, kTerminal);
  hold.await_output("\n");
  expect_held("k");
  hold.type("\x03");
  EXPECT_EQ(hold.await_exit(), 128 + SIGINT);
  expect_let_go("k");
}

}  // namespace
}  // namespace lockd
