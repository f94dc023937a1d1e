// lockctl run under a terminal: it is the command's, and what it sends is not doubled.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/testing/eventually.h"
#include "cli/lockctl.h"

namespace lockd {
namespace {

char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? '?' : line[name_end + 2];
}

bool await_state(pid_t pid, const std::string& states) {
  return eventually([&] { return states.find(state_of(pid)) != std::string::npos; });
}

TEST(RunTerminal, IsTheCommands) {
  ServerProcess server;
  Lockctl process(run(server, {"k", "-c",
                               "test -t 0 && test -t 1 && test -t 2 && echo all three; "
                               "read line; echo \"read $line\"; exit 4"}),
                  kTerminal);
  process.await_output("all three");
  process.type("hello\n");
  process.await_output("read hello");
  EXPECT_EQ(process.await_exit(), 4);
}

TEST(RunTerminal, AnInterruptReachesTheCommandOnce) {
  ServerProcess server;
  Lockctl process(run(server, {"k", "-c",
                               "trap 'n=$((n + 1)); echo \"<$n>\"' INT; echo pid=$$.; "
                               "until read line; do :; done; echo \"total $n\"; exit 6"}),
                  kTerminal);
  process.await_output(".");
  const pid_t child = pid_behind(process.output(), "pid=");
  // A shell that is about to read, and has looked for signals, would hear of it after the line.
  EXPECT_TRUE(await_state(child, "S"));
  process.type("\x03");
  process.await_output("<1>");
  EXPECT_TRUE(await_state(child, "S"));
  process.type("\x03");
  process.await_output("<2>");
  process.type("done\n");
  process.await_output("total 2");
  EXPECT_EQ(process.await_exit(), 6);
  EXPECT_EQ(process.output().find("<3>"), std::string::npos);
}

TEST(RunTerminal, AnInterruptEndsACommandThatDoesNotMind) {
  ServerProcess server;
  Lockctl process(run(server, {"k", "-c", "echo ready; exec sleep 600"}), kTerminal);
  process.await_output("ready");
  process.type("\x03");
  EXPECT_EQ(process.await_exit(), 130);
}

TEST(RunTerminal, AnInterruptLeavesTheLine) {
  ServerProcess server;
  LineClient holder = server.connect();
  holder.ask(request("l", "k", "0 600"));
  LineClient watcher = server.connect();
  Lockctl process(run(server, {"k", "true"}), kTerminal);
  await_stats(watcher, "\"waiters\":1");
  process.type("\x03");
  EXPECT_EQ(process.await_exit(), 130);
  await_stats(watcher, "\"waiters\":0");
}

// Job control needs a shell that does it.
class RunJob : public testing::Test {
 protected:
  RunJob()
      : shell_({"--norc", "--noprofile", "-i"},
               {.environment = {"PS1=> "}, .terminal = true, .program = "/bin/bash"}) {
    shell_.await_output("> ");
  }

  void start(const std::string& options, const std::string& script) {
    shell_.type(path_of_lockctl() + " run -s " + address_of(server_) + ' ' + options +
                " -c 'echo lockctl=$PPID; echo child=$$; " + script + "'\n");
    lockctl_ = await_pid("lockctl=");
    child_ = await_pid("child=");
  }

  pid_t await_pid(const std::string& name) {
    EXPECT_TRUE(eventually([&] { return pid_in(name) > 1; })) << name << " is not in:\n"
                                                              << shell_.output();
    return pid_in(name);
  }

  // The line as it is typed has no number.
  pid_t pid_in(const std::string& name) {
    const std::string out = shell_.output();
    for (std::size_t at = 0; (at = out.find(name, at)) != std::string::npos; ++at) {
      const std::size_t digits = at + name.size();
      const std::size_t end = out.find_first_not_of("0123456789", digits);
      if (end != std::string::npos && end > digits) return std::stoi(out.substr(digits));
    }
    return -1;
  }

  ServerProcess server_;
  Lockctl shell_;
  pid_t lockctl_ = -1;
  pid_t child_ = -1;
};

TEST_F(RunJob, IsStoppedAndGoesOn) {
  start("--ttl 600 k", "read line; echo \"read $line.\"; exit 4");
  shell_.type("\x1a");
  shell_.await_output("Stopped");
  EXPECT_TRUE(await_state(lockctl_, "T"));
  EXPECT_TRUE(await_state(child_, "T"));
  shell_.type("echo the shell has it\n");
  shell_.await_output("the shell has it", 2);
  shell_.type("fg\n");
  EXPECT_TRUE(await_state(child_, "RSD"));
  EXPECT_TRUE(await_state(lockctl_, "RSD"));
  shell_.type("hello\n");
  shell_.await_output("read hello.");
  shell_.type("echo status=$?.\n");
  shell_.await_output("status=4.");
}

TEST_F(RunJob, IsEndedWhenItsLeaseRanOutMeanwhile) {
  // Without exec, the stop may come between the shell's vfork and the exec of its child: the child
  // stops, and the shell, which waits for that exec inside the kernel, cannot.
  start("--ttl 5 k", "exec sleep 600");
  shell_.type("\x1a");
  shell_.await_output("Stopped");
  LineClient next = server_.connect();
  EXPECT_EQ(masked(next.ask(request("l", "k", "60 600"))), "ok <token> 600");
  shell_.type("fg\n");
  shell_.await_output("is lost");
  EXPECT_TRUE(await_death(child_));
  EXPECT_TRUE(await_death(lockctl_));
  shell_.type("echo status=$?.\n");
  shell_.await_output("status=79.");
}

TEST_F(RunJob, StandsInLineStopped) {
  LineClient holder = server_.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 600")));
  LineClient watcher = server_.connect();
  shell_.type(path_of_lockctl() + " run -s " + address_of(server_) + " k -c 'echo $((6 * 7))!'\n");
  await_stats(watcher, "\"waiters\":1");
  shell_.type("\x1a");
  shell_.await_output("Stopped");
  await_stats(watcher, "\"waiters\":1");
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  shell_.type("fg\n");
  shell_.await_output("42!");
}

}  // namespace
}  // namespace lockd
