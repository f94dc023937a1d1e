// The real program under what systemd would do: notifications, the watchdog, a socket passed in.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "net/listen.h"
#include "server/server.h"
#include "server/systemd.h"
#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Where notifications arrive.
class NotifySocket {
 public:
  NotifySocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      std::abort();
    }
  }
  ~NotifySocket() { ::close(socket_); }
  std::string path() const { return folder_.path() + "/notify"; }

  // The next that is not about the watchdog, or that is.
  std::string next(bool watchdog = false) {
    for (;;) {
      pollfd readable{socket_, POLLIN, 0};
      if (::poll(&readable, 1, 30'000) <= 0) return "<silence>";
      std::array<char, 1024> bytes;
      const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (size < 0) return "<error>";
      const std::string text(bytes.data(), static_cast<std::size_t>(size));
      if ((text == "WATCHDOG=1") == watchdog) return text;
    }
  }

 private:
  const int socket_;
  const TemporaryDirectory folder_;
};

// The program with `listening` as systemd passes it: descriptor 3, and variables that say so.
pid_t start_program(int listening, const NotifySocket& notify) {
  const std::string address = notify.path();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(listening, 3);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("LISTEN_FDNAMES", "lockd.socket", 1);
  ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
  // It is heard of every quarter of this. Not more often: ten that nobody has read fill the socket,
  // and what comes then is lost.
  ::setenv("WATCHDOG_USEC", "4000000", 1);
  ::execl(LOCKD_TEST_SERVER, "lockd", "--memory", "--http-addr", "off", "--log-level", "error",
          nullptr);
  ::_exit(127);
}

TEST(Systemd, IsToldWhatTheServiceDoesAndPassesItsSocket) {
  NotifySocket notify;
  const ListeningSocket listening = listen_on("127.0.0.1", 0);
  ASSERT_EQ(listening.error, "");
  const pid_t program = start_program(listening.descriptor.get(), notify);
  EXPECT_EQ(notify.next(), "READY=1");
  EXPECT_EQ(notify.next(true), "WATCHDOG=1");
  EXPECT_EQ(LineClient(listening.port, 0, false).ask(request("ping", "", "")), "ok");

  ::kill(program, SIGHUP);
  EXPECT_TRUE(notify.next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_EQ(notify.next(), "READY=1");

  ::kill(program, SIGTERM);
  EXPECT_EQ(notify.next(), "STOPPING=1");
  int status = 0;
  ASSERT_EQ(::waitpid(program, &status, 0), program);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

config::Environment variables(const std::vector<std::pair<std::string, std::string>>& values) {
  return {.variable = [values](const char* name) -> const char* {
    for (const auto& [known, value] : values) {
      if (known == name) return value.c_str();
    }
    return nullptr;
  }};
}

TEST(Systemd, WhatIsMeantForAnotherProcessIsLeftAlone) {
  const Systemd other(variables({{"LISTEN_PID", "1"},
                                 {"LISTEN_FDS", "1"},
                                 {"WATCHDOG_PID", "1"},
                                 {"WATCHDOG_USEC", "1000000"}}));
  EXPECT_TRUE(other.sockets().empty());
  EXPECT_EQ(other.watchdog(), 0us);
  const Systemd none(variables({}));
  none.ready();  // to nobody
  EXPECT_TRUE(none.sockets().empty());
}

TEST(Systemd, ASocketThatDoesNotListenIsRefused) {
  const int idle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_NE(Server(line_options()).start({{idle, "lockd.socket"}}), "");
  ::close(idle);
}

}  // namespace
}  // namespace lockd
