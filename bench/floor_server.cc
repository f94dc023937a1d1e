// The floor: what it costs to read, frame and answer lines when nothing is decided.
//
// One thread, one epoll, one read and one write for what a connection has sent, straight system
// calls. Replies are constant and as long as lockd's. What a server costs beyond this is its own
// doing.
//
//   floor_server PORT
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "support/loopback.h"

namespace lockd::bench {
namespace {

constexpr std::string_view kGrant = "ok 0123456789abcdef0123456789abcdef 30\n";
constexpr std::string_view kOk = "ok\n";

struct Peer {
  int descriptor;
  std::string unread;  // the beginning of a request
};

// The size of the request that `bytes` begin with: three lines. 0 when it is not all there.
std::size_t request_size(std::string_view bytes) {
  std::size_t size = 0;
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = bytes.find('\n', size);
    if (end == std::string_view::npos) return 0;
    size = end + 1;
  }
  return size;
}

// Answers the requests that are complete; returns how many bytes they were.
std::size_t answer(std::string_view bytes, std::string& out) {
  std::size_t taken = 0;
  while (const std::size_t size = request_size(bytes.substr(taken))) {
    out += bytes[taken] == 'l' ? kGrant : kOk;
    taken += size;
  }
  return taken;
}

// False when the peer has gone, or does not take its replies.
bool serve(Peer& peer, std::string& out) {
  static std::array<char, 64 * 1024> buffer;
  const ssize_t size = ::recv(peer.descriptor, buffer.data(), buffer.size(), 0);
  if (size <= 0) return false;
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
  if (!peer.unread.empty()) bytes = peer.unread.append(bytes);
  out.clear();
  peer.unread = std::string(bytes.substr(answer(bytes, out)));
  return out.empty() || ::send(peer.descriptor, out.data(), out.size(), MSG_NOSIGNAL) ==
                            static_cast<ssize_t>(out.size());
}

void watch(int epoll, int descriptor, Peer* peer) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = peer;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

void admit(int epoll, int listening) {
  const int descriptor = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return;
  be_prompt(descriptor);
  watch(epoll, descriptor, new Peer{descriptor, {}});
}

void run(std::uint16_t port) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int listening = listen_on_loopback(port, SOMAXCONN);
  ::fcntl(listening, F_SETFL, O_NONBLOCK);
  watch(epoll, listening, nullptr);
  std::string out;
  while (true) {
    constexpr int kEvents = 128;
    epoll_event events[kEvents];
    const int ready = ::epoll_wait(epoll, events, kEvents, -1);
    for (int i = 0; i < ready; ++i) {
      auto* const peer = static_cast<Peer*>(events[i].data.ptr);
      if (peer == nullptr) {
        admit(epoll, listening);
      } else if (!serve(*peer, out)) {
        ::close(peer->descriptor);
        delete peer;
      }
    }
  }
}

}  // namespace
}  // namespace lockd::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: floor_server PORT\n", stderr);
    return EXIT_FAILURE;
  }
  lockd::bench::run(static_cast<std::uint16_t>(std::atoi(argv[1])));
}
