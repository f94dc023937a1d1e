#include "ha/distant_port.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "support/loopback.h"

namespace lockd::ha_test {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// What one end has sent and the other has yet to receive.
class DistantPort::Pipe {
 public:
  Pipe(int from, int to, std::chrono::milliseconds distance)
      : from_(from), to_(to), distance_(distance), reader_([this] { read(); }), writer_([this] {
          write();
        }) {}
  // Both ends are shut down by then.
  ~Pipe() {
    reader_.join();
    writer_.join();
  }

 private:
  struct Piece {
    Clock::time_point due;
    std::string bytes;  // none: that was all
  };

  void read() {
    std::array<char, 65536> buffer;
    ssize_t size = 0;
    do {
      size = ::recv(from_, buffer.data(), buffer.size(), 0);
      const std::size_t came = size > 0 ? static_cast<std::size_t>(size) : 0;
      const std::lock_guard lock(mutex_);
      pieces_.push_back({Clock::now() + distance_, std::string(buffer.data(), came)});
      came_.notify_one();
    } while (size > 0);
  }

  void write() {
    while (true) {
      Piece piece;
      {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [this] { return !pieces_.empty(); });
        piece = std::move(pieces_.front());
        pieces_.pop_front();
      }
      std::this_thread::sleep_until(piece.due);
      if (piece.bytes.empty()) {
        ::shutdown(to_, SHUT_WR);
        return;
      }
      for (std::size_t sent = 0; sent < piece.bytes.size();) {
        const ssize_t size =
            ::send(to_, piece.bytes.data() + sent, piece.bytes.size() - sent, MSG_NOSIGNAL);
        if (size <= 0) break;  // the end of it is read in the other direction
        sent += static_cast<std::size_t>(size);
      }
    }
  }

  const int from_;
  const int to_;
  const std::chrono::milliseconds distance_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Piece> pieces_;
  std::thread reader_;
  std::thread writer_;
};

class DistantPort::Link {
 public:
  Link(int near, int far, std::chrono::milliseconds distance)
      : near_(near), far_(far), up_(near, far, distance), down_(far, near, distance) {}

  void cut() const {
    ::shutdown(near_.socket, SHUT_RDWR);
    ::shutdown(far_.socket, SHUT_RDWR);
  }

 private:
  struct Socket {
    explicit Socket(int number) : socket(number) { be_prompt(socket); }
    ~Socket() { ::close(socket); }
    const int socket;
  };

  const Socket near_;
  const Socket far_;
  Pipe up_;
  Pipe down_;
};

DistantPort::DistantPort(std::uint16_t upstream, std::chrono::milliseconds distance)
    : upstream_(upstream),
      distance_(distance),
      socket_(listen_on_loopback()),
      port_(port_of(socket_)),
      acceptor_([this] { accept(); }) {}

DistantPort::~DistantPort() {
  ::shutdown(socket_, SHUT_RDWR);
  acceptor_.join();
  for (const Link& link : links_) link.cut();
  links_.clear();
  ::close(socket_);
}

void DistantPort::accept() {
  while (true) {
    const int near = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0) return;
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(upstream_);
    if (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(near);
      ::close(far);
      continue;
    }
    links_.emplace_back(near, far, distance_);
  }
}

}  // namespace lockd::ha_test
