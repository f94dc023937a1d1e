#include "support/lying_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "support/loopback.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Takes the last word off an argument if it is the secret of an acquisition.
std::string take_secret(std::string& argument) {
  const std::size_t begin = argument.rfind("as=");
  if (begin == std::string::npos || (begin > 0 && argument[begin - 1] != ' ')) return {};
  std::string secret = argument.substr(begin);
  argument.erase(begin > 0 ? begin - 1 : 0);
  return secret;
}

}  // namespace

std::optional<Asked> Peer::read_request() {
  auto command = read_line();
  auto key = command ? read_line() : std::nullopt;
  auto argument = key ? read_line() : std::nullopt;
  if (!argument) return {};
  std::string secret = take_secret(*argument);
  return Asked{std::move(*command), std::move(*key), std::move(*argument), std::move(secret),
               BootClock::now()};
}

std::optional<std::string> Peer::read_line() {
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size <= 0) return {};
    unread_.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

// Reads no further than what says who the client is.
void Peer::answer_introduction() {
  constexpr std::string_view kCommand = "client\n";
  std::array<char, kCommand.size()> begin{};
  const ssize_t size = ::recv(socket_, begin.data(), begin.size(), MSG_PEEK | MSG_WAITALL);
  if (size <= 0 || std::string_view(begin.data(), static_cast<std::size_t>(size)) != kCommand)
    return;
  read_request();
  send("ok\n");
}

bool Peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool Peer::send_bytewise(std::string_view bytes) {
  for (const char byte : bytes) {
    if (!send({&byte, 1})) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

void Peer::stay_silent() {
  std::array<char, 4096> bytes;
  while (::recv(socket_, bytes.data(), bytes.size(), 0) > 0) {
  }
}

void Peer::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Peer::end_by_reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void Peer::cut() const { ::shutdown(socket_, SHUT_RDWR); }

LyingServer::LyingServer(Script script, std::uint16_t port, Hears hears)
    : script_(std::move(script)),
      hears_(hears),
      listener_(listen_on_loopback(port)),
      port_(port_of(listener_)),
      thread_([this] { accept_all(); }) {}

LyingServer::~LyingServer() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const Guest& guest : guests_) guest.peer.cut();
  }
  for (Guest& guest : guests_) guest.thread.join();
}

void LyingServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    be_prompt(socket);
    const std::lock_guard lock(mutex_);
    Guest& guest = guests_.emplace_back(socket, connections_++);
    guest.thread = std::thread([this, &guest] {
      if (hears_ == Hears::requests) guest.peer.answer_introduction();
      script_(guest.peer);
      const std::lock_guard closing(mutex_);
      guest.peer.close();
    });
  }
}

ConnectOptions patient() { return {.connect_timeout = 60s, .reply_timeout = 60s}; }

Connection connect(const LyingServer& server, const ConnectOptions& options) {
  auto opened = Connection::open(server.address(), options);
  EXPECT_TRUE(opened) << describe(opened);
  return std::move(*opened);
}

}  // namespace lockd::client
