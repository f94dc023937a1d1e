// lockctl top under a terminal: it shows, it ends, and leaves the terminal as it was.
#include <gtest/gtest.h>
#include <signal.h>
#include <termios.h>

#include <string>
#include <vector>

#include "cli/lockctl.h"

namespace lockd {
namespace {

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?1049l";

bool is_cooked(int terminal) {
  termios now{};
  EXPECT_EQ(::tcgetattr(terminal, &now), 0);
  return (now.c_lflag & ICANON) != 0 && (now.c_lflag & ECHO) != 0;
}

TEST(Top, ShowsHotKeysAndQuits) {
  ServerProcess server;
  LineClient holder = server.connect();
  holder.ask(request("l", "hot-key", "0 600"));
  Lockctl top({"top", "-s", address_of(server), "-i", "0.1"}, kTerminal);
  top.await_output("hot-key");
  EXPECT_NE(top.output().find(kEnter), std::string::npos);
  EXPECT_FALSE(is_cooked(top.terminal()));
  top.type("q");
  EXPECT_EQ(top.await_exit(), 0);
  EXPECT_TRUE(top.output().ends_with(kLeave));
  EXPECT_TRUE(is_cooked(top.terminal()));
}

TEST(Top, IsRestoredWhateverEndsIt) {
  ServerProcess server;
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGSEGV, SIGABRT}) {
    Lockctl top({"top", "-s", address_of(server)}, kTerminal);
    top.await_output("connections");
    top.signal(number);
    const int status = top.await_exit();
    if (number == SIGSEGV || number == SIGABRT) {
      EXPECT_NE(status, 0);
    } else {
      EXPECT_EQ(status, number == SIGINT ? 0 : 128 + number);
    }
    EXPECT_NE(top.output().find(kLeave), std::string::npos) << "signal " << number;
    EXPECT_TRUE(is_cooked(top.terminal())) << "signal " << number;
  }
}

TEST(Top, FollowsTheSizeOfTheScreen) {
  ServerProcess server;
  Lockctl top({"top", "-s", address_of(server), "-i", "600"}, kTerminal);
  top.await_output("connections");
  top.resize(10, 120);
  // The heading is as wide as the screen: so much is behind it on the first frame, which says
  // nothing of the server yet, and again on a wide one.
  top.await_output(std::string(60, ' '), 2);
  top.type("q");
  EXPECT_EQ(top.await_exit(), 0);
}

TEST(Top, SurvivesAServerThatGoesAway) {
  ServerProcess server;
  Lockctl top({"top", "-s", address_of(server), "-i", "0.1"}, kTerminal);
  top.await_output("connections");
  server.kill();
  top.await_output("annot");  // cannot connect
  top.type("q");
  EXPECT_EQ(top.await_exit(), 0);
}

TEST(Top, NeedsATerminal) { EXPECT_EQ(lockctl({"top"}).status, 64); }

TEST(Colours, AppearOnATerminalUnlessTheyAreNotWanted) {
  ServerProcess server;
  Lockctl coloured({"ping", "-s", address_of(server)}, kTerminal);
  EXPECT_EQ(coloured.await_exit(), 0);
  EXPECT_NE(coloured.output().find("\x1b[1m"), std::string::npos);
  Lockctl plain({"ping", "-s", address_of(server)},
                {.environment = {"NO_COLOR=1"}, .terminal = true});
  EXPECT_EQ(plain.await_exit(), 0);
  EXPECT_EQ(plain.output().find('\x1b'), std::string::npos);
}

TEST(Bench, ShowsProgressOnATerminal) {
  ServerProcess server;
  Lockctl bench({"bench", "-s", address_of(server), "--rounds", "20"}, kTerminal);
  EXPECT_EQ(bench.await_exit(), 0);
  EXPECT_NE(bench.output().find("] 200 of 200 rounds"), std::string::npos);
}

}  // namespace
}  // namespace lockd
