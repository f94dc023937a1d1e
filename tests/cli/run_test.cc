// lockctl run under a pipe: statuses, conflicts, what the command sees, signals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/eventually.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class RunTest : public testing::Test {
 protected:
  Words run(const Words& more) const { return lockd::run(server_, more); }
  Words shell(const std::string& key, const std::string& script) const {
    return run({key, "--", "/bin/sh", "-c", script});
  }

  // Somebody else who holds the key.
  LineClient hold(const std::string& key) {
    LineClient client = server_.connect();
    EXPECT_EQ(masked(client.ask(request("l", key, "0 600"))), "ok <token> 600");
    return client;
  }

  ServerProcess server_;
};

TEST_F(RunTest, TheStatusIsTheCommands) {
  EXPECT_EQ(lockctl(run({"k", "--", "true"})).status, 0);
  EXPECT_EQ(lockctl(run({"k", "--", "false"})).status, 1);
  EXPECT_EQ(lockctl(run({"k", "sh", "-c", "exit 255"})).status, 255);
  for (const int number : {SIGTERM, SIGKILL, SIGINT, SIGSEGV}) {
    EXPECT_EQ(lockctl(shell("k", "kill -" + std::to_string(number) + " $$")).status, 128 + number);
  }
}

TEST_F(RunTest, TheShellMayBeAskedTo) {
  const Finished plain = lockctl(run({"k", "-c", "echo $((40 + 2)) | cat"}));
  EXPECT_EQ(plain.output, "42\n");
  const Finished chosen =
      lockctl(run({"k", "-c", "echo $0"}), {.environment = {"SHELL=/bin/bash"}});
  EXPECT_EQ(chosen.output, "/bin/bash\n");
}

TEST_F(RunTest, AConflictHasItsOwnCodeAndRunsNothing) {
  const LineClient holder = hold("k");
  for (const Words& options : {Words{"-n"}, Words{"-w", "0"}, Words{"--nonblock"}}) {
    const Finished finished = lockctl(run(joined(options, {"k", "echo", "ran"})));
    EXPECT_EQ(finished.status, 1);
    EXPECT_EQ(finished.output + finished.errors, "");
  }
  EXPECT_EQ(lockctl(run({"-n", "-E", "42", "k", "true"})).status, 42);
  EXPECT_EQ(lockctl(run({"-nE0", "k", "false"})).status, 0);
}

TEST_F(RunTest, ALockMayBeShared) {
  LineClient reader = server_.connect();
  const std::string token = token_of(reader.ask(request("l", "k", "0 600 shared")));
  for (const Words& options : {Words{"-S"}, Words{"--shared"}, Words{"-nS"}}) {
    const Finished finished = lockctl(run(joined(options, {"k", "echo", "read"})));
    EXPECT_EQ(finished.output, "read\n") << finished.errors;
  }
  EXPECT_EQ(lockctl(run({"-n", "k", "true"})).status, 1) << "alone";
  const Finished inner = lockctl(run({"-S", "k", path_of_lockctl(), "run", "-s",
                                      address_of(server_), "-nS", "k", "echo", "both"}));
  EXPECT_EQ(inner.output, "both\n") << inner.errors;
  EXPECT_EQ(reader.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(lockctl(run({"-n", "k", "true"})).status, 0);
}

TEST_F(RunTest, SeveralPermitsOfASemaphore) {
  LineClient other = server_.connect();
  EXPECT_EQ(masked(other.ask(request("sl", "k", "0 8 600 3"))), "ok <token> 600");
  const auto take = [&](const char* permits) {
    return lockctl(run({"-n", "--semaphore", "8", "--permits", permits, "k", "true"})).status;
  };
  EXPECT_EQ(take("5"), 0);
  EXPECT_EQ(take("6"), 1);
  EXPECT_EQ(take("9"), 64) << "more than there are";
  EXPECT_EQ(lockctl(run({"--permits", "2", "k", "true"})).status, 64) << "of a lock";
  EXPECT_EQ(lockctl(run({"-S", "--semaphore", "8", "k", "true"})).status, 64);
}

TEST_F(RunTest, WhoIsWaitedForIsSaid) {
  LineClient holder = server_.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 600")));
  const Finished refused = lockctl(run({"-nv", "k", "true"}));
  EXPECT_TRUE(has(refused.errors, "lockctl: gave up on 'k' after ")) << refused.errors;
  EXPECT_TRUE(has(refused.errors, ", held by 'tcp:")) << refused.errors;
  Lockctl waiting(run({"-v", "k", "true"}));
  waiting.await_errors("lockctl: waiting for 'k', held by 'tcp:");
  waiting.await_errors(", 1 waiting\n");
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(waiting.await_exit(), 0);
  EXPECT_TRUE(has(waiting.errors(), "lockctl: got 'k' after ")) << waiting.errors();
  // Who does not wait is told of nobody.
  EXPECT_FALSE(has(lockctl(run({"-v", "k", "true"})).errors, "waiting"));
}

TEST_F(RunTest, AWaitIsNeverTooShort) {
  const LineClient holder = hold("k");
  const auto start = SteadyClock::now();
  EXPECT_EQ(lockctl(run({"-w", "0.25", "-E", "9", "k", "true"})).status, 9);
  EXPECT_GE(SteadyClock::now() - start, 250ms);
  EXPECT_EQ(lockctl(run({"-w", "250ms", "-E", "9", "k", "true"})).status, 9);
  EXPECT_GE(SteadyClock::now() - start, 500ms);
}

TEST_F(RunTest, ALeaseIsOfWholeSeconds) {
  EXPECT_EQ(lockctl(run({"--ttl", "1m", "k", "true"})).status, 0);
  const Finished half = lockctl(run({"--ttl", "1500ms", "k", "true"}));
  EXPECT_EQ(half.status, 64);
  EXPECT_EQ(half.errors, "lockctl: --ttl: whole seconds, over the line port\n");
}

TEST_F(RunTest, TheLockIsHeldWhileTheCommandRunsAndNoLonger) {
  Lockctl process(shell("k", "echo ready; exec sleep 600"));
  process.await_output("ready");
  LineClient next = server_.connect();
  EXPECT_EQ(next.ask(request("l", "k", "0 5")), "timeout");
  process.signal(SIGTERM);
  EXPECT_EQ(process.await_exit(), 128 + SIGTERM);
  EXPECT_EQ(masked(next.ask(request("l", "k", "0 5"))), "ok <token> 5");
}

TEST_F(RunTest, TheCommandSeesItsLock) {
  const auto before = std::time(nullptr);
  const Finished finished =
      lockctl(run({"--ttl", "600", "my key", "-c",
                   "echo \"$LOCKD_KEY|$LOCKD_TOKEN|$LOCKD_FENCE|$LOCKD_EXPIRES_AT\""}));
  // time(2) may be a tick behind the clock that lockctl reads.
  const auto after = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string& out = finished.output;
  ASSERT_TRUE(out.starts_with("my key|")) << out;
  const std::string token = out.substr(7, 32);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  const std::size_t bar = out.find('|', 40);
  EXPECT_EQ(std::stoull(out.substr(40)), std::stoull(token.substr(0, 16), nullptr, 16));
  const auto expires = std::stoll(out.substr(bar + 1));
  EXPECT_GE(expires, before + 540);
  EXPECT_LE(expires, after + 600);
}

TEST_F(RunTest, TheCommandSeesNoSecrets) {
  const std::string script = "echo [$LOCKD_AUTH_TOKEN$LOCKD_AUTH_TOKEN_FILE$OTHER]";
  TemporaryDirectory folder;
  std::ofstream(folder.path() + "/token") << "hush\n";
  ServerProcess guarded({"--auth-token-file", folder.path() + "/token"});
  const Words words{"run", "-s", address_of(guarded), "k", "-c", script};
  const Lockctl::Launch by_value{.environment = {"LOCKD_AUTH_TOKEN=hush", "OTHER=x"}};
  const Lockctl::Launch by_file{
      .environment = {"LOCKD_AUTH_TOKEN_FILE=" + folder.path() + "/token", "OTHER=x"}};
  EXPECT_EQ(lockctl(words, by_value).output, "[x]\n");
  EXPECT_EQ(lockctl(words, by_file).output, "[x]\n");
  EXPECT_EQ(lockctl(with_options(words, {"--keep-auth"}), by_value).output, "[hushx]\n");
  // Nor where lockctl has them.
  Words looking = words;
  looking.back() = "tr '\\0' ' ' < /proc/$PPID/environ";
  for (const bool keeps : {false, true}) {
    if (keeps) looking = with_options(looking, {"--keep-auth"});
    const Finished looked = lockctl(looking, by_value);
    EXPECT_EQ(looked.status, 0);
    EXPECT_EQ(looked.output.find("hush"), std::string::npos) << looked.output;
    EXPECT_NE(looked.output.find("LOCKD_AUTH_TOKEN=****"), std::string::npos) << looked.output;
  }
  // Nor does anybody else who looks at the arguments.
  const Finished typed = lockctl({"run", "-s", address_of(guarded), "--token", "hush", "k", "-c",
                                  "tr '\\0' ' ' < /proc/$PPID/cmdline"});
  EXPECT_EQ(typed.status, 0);
  EXPECT_EQ(typed.output.find("hush"), std::string::npos);
  EXPECT_NE(typed.output.find("--token ****"), std::string::npos) << typed.output;
}

TEST_F(RunTest, TheCommandInheritsWhatWeInheritedAndNothingOfOurs) {
  // What it has open to list them is closed again when it prints them.
  const std::string script =
      "for file in /proc/$$/fd/*; do [ -e $file ] && printf '%s ' ${file##*/}; done";
  EXPECT_EQ(lockctl(run({"k", "-c", script})).output, "0 1 2 ");
  const int file = ::open("/dev/null", O_RDONLY);
  ASSERT_EQ(::dup2(file, 9), 9);
  EXPECT_EQ(lockctl(run({"k", "-c", script}), {.descriptors = {9}}).output, "0 1 2 9 ");
  ::close(9);
  ::close(file);
}

TEST_F(RunTest, StandardInputIsTheCommands) {
  EXPECT_EQ(lockctl(run({"k", "cat"}), {.input = "one\ntwo\n"}).output, "one\ntwo\n");
}

TEST_F(RunTest, WhatCannotBeRunIsSaidAsShellsSayIt) {
  const Finished missing = lockctl(run({"k", "/no/such/program"}));
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.errors, "lockctl: /no/such/program: No such file or directory\n");
  EXPECT_EQ(lockctl(run({"k", "/etc"})).status, 126);
  LineClient next = server_.connect();
  EXPECT_EQ(masked(next.ask(request("l", "k", "0 5"))), "ok <token> 5") << "it was not released";
}

TEST_F(RunTest, EverySignalIsPassedOnOnce) {
  const std::vector<std::pair<std::string, int>> signals{
      {"TERM", SIGTERM}, {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},
      {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"WINCH", SIGWINCH}};
  for (const auto& [name, number] : signals) {
    // A shell started with & or by a test may ignore INT and QUIT; one that runs a trap does not.
    Lockctl process(shell("k", "trap 'echo got " + name + "' " + name +
                                   "; trap 'exit 5' RTMIN; echo ready; "
                                   "while :; do sleep 0.02; done"));
    process.await_output("ready");
    process.signal(number);
    process.await_output("got " + name);
    process.signal(SIGRTMIN);
    EXPECT_EQ(process.await_exit(), 5) << name;
    const std::string out = process.output();
    EXPECT_EQ(out.find("got", out.find("got") + 1), std::string::npos) << "twice: " << out;
  }
}

TEST_F(RunTest, TheLineIsLeftAtOnce) {
  const LineClient holder = hold("k");
  LineClient watcher = server_.connect();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Lockctl process(run({"k", "echo", "ran"}));
    await_stats(watcher, "\"waiters\":1");
    process.signal(number);
    EXPECT_EQ(process.await_exit(), 128 + number);
    EXPECT_EQ(process.output(), "");
    await_stats(watcher, "\"waiters\":0");
  }
}

TEST_F(RunTest, WhatWasIgnoredStaysIgnored) {
  LineClient holder = server_.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 600")));
  LineClient watcher = server_.connect();
  Lockctl process({"-c", "trap '' HUP; exec " + path_of_lockctl() + " run -s " +
                             address_of(server_) + " k -- sh -c 'echo ready; exec sleep 600'"},
                  {.program = "/bin/sh"});
  await_stats(watcher, "\"waiters\":1");
  process.signal(SIGHUP);  // in the queue
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  process.await_output("ready");
  process.signal(SIGHUP);  // and while the command runs
  process.signal(SIGTERM);
  EXPECT_EQ(process.await_exit(), 128 + SIGTERM);
}

TEST_F(RunTest, ASemaphoreHasItsSlots) {
  Lockctl first(run({"--semaphore", "2", "s", "-c", "echo in; exec sleep 600"}));
  Lockctl second(run({"--semaphore", "2", "s", "-c", "echo in; exec sleep 600"}));
  first.await_output("in");
  second.await_output("in");
  EXPECT_EQ(lockctl(run({"-n", "--semaphore", "2", "s", "true"})).status, 1);
  EXPECT_EQ(lockctl(run({"-n", "--semaphore", "3", "s", "true"})).status, 65);
  first.signal(SIGTERM);
  EXPECT_EQ(first.await_exit(), 128 + SIGTERM);
  EXPECT_EQ(lockctl(run({"--semaphore", "2", "s", "true"})).status, 0);
}

TEST_F(RunTest, NoChildOutlivesAKilledLockctl) {
  Lockctl process(run({"k", "-c", "echo pid=$$; exec sleep 600"}));
  process.await_output("pid=");
  const pid_t child = pid_behind(process.output(), "pid=");
  ASSERT_TRUE(is_alive(child));
  process.signal(SIGKILL);
  EXPECT_EQ(process.await_exit(), -1 - SIGKILL);
  EXPECT_TRUE(await_death(child));
  LineClient next = server_.connect();
  EXPECT_EQ(masked(next.ask(request("l", "k", "30 5"))), "ok <token> 5") << "nor does its lock";
}

TEST_F(RunTest, WhatItLeavesBehindIsReaped) {
  // The middle process ends at once, so its child becomes lockctl's; that ends too, and must not
  // stay a zombie while the command runs.
  Lockctl process(shell("k",
                        "trap 'exit 0' TERM; (sh -c 'echo orphan=$$; sleep 0.05' &) ; "
                        "echo ready; while :; do sleep 0.02; done"));
  process.await_output("ready");
  process.await_output("orphan=");
  const std::string orphan =
      "/proc/" + std::to_string(pid_behind(process.output(), "orphan=")) + "/stat";
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(orphan); }));
  process.signal(SIGTERM);
  EXPECT_EQ(process.await_exit(), 0);
}

}  // namespace
}  // namespace lockd
