#include "line_load.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "client_socket.h"

namespace lockd::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::string key_of(int number) {
  const std::string digits = std::to_string(number);
  return "key-" + std::string(8 - digits.size(), '0') + digits;
}

class LoadConnection {
 public:
  LoadConnection(Protocol protocol, std::uint16_t port, int number, const LoadShape& shape)
      : protocol_(protocol), socket_(port) {
    for (int i = 0; i < shape.pipeline; ++i) {
      const int key = shape.one_key ? 0 : number * shape.pipeline + i;
      entries_.push_back({Dialogue(protocol, key_of(key), shape.one_key ? 60 : 0), {}});
    }
  }

  int descriptor() const { return socket_.descriptor(); }

  // The first request of every dialogue.
  void begin() {
    for (Entry& entry : entries_) append_request(entry, Clock::now());
    send();
  }

  // Checks the replies that have come, and sends what follows on them.
  void go_on(LoadResult& result) {
    std::array<char, 8192> buffer;
    unread_ += socket_.receive(buffer);
    const Clock::time_point now = Clock::now();
    std::size_t start = 0;
    for (std::size_t size; (size = first_reply(start)) > 0; start += size) {
      Entry& entry = entries_[next_];
      next_ = (next_ + 1) % entries_.size();
      take(entry, std::string_view(unread_).substr(start, size));
      result.latencies.record(now - entry.sent_at);
      ++result.requests;
      append_request(entry, now);
    }
    unread_.erase(0, start);
    send();
  }

 private:
  struct Entry {
    Dialogue dialogue;
    Clock::time_point sent_at;
  };

  void append_request(Entry& entry, Clock::time_point now) {
    entry.sent_at = now;
    output_ += entry.dialogue.request();
  }

  std::size_t first_reply(std::size_t start) const {
    return reply_size(protocol_, std::string_view(unread_).substr(start));
  }

  static void take(Entry& entry, std::string_view reply) {
    const std::string_view request = entry.dialogue.request();
    if (entry.dialogue.take(reply)) return;
    throw std::runtime_error("unexpected reply '" + std::string(reply) + "' to '" +
                             std::string(request) + "'");
  }

  void send() {
    socket_.send(output_);
    output_.clear();
  }

  const Protocol protocol_;
  ClientSocket socket_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  // whose reply comes next
  std::string unread_;
  std::string output_;
};

class Load {
 public:
  Load(Protocol protocol, std::uint16_t port, LoadShape shape) {
    connections_.reserve(static_cast<std::size_t>(shape.connections));
    for (int i = 0; i < shape.connections; ++i) {
      connections_.emplace_back(protocol, port, i, shape);
    }
    for (LoadConnection& connection : connections_) watch(connection);
    for (LoadConnection& connection : connections_) connection.begin();
  }
  ~Load() { ::close(epoll_); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // What happened until it was `end`, or a little later.
  LoadResult run_until(Clock::time_point end) {
    LoadResult result;
    const Clock::time_point start = Clock::now();
    Clock::time_point now = start;
    while (now < end) {
      constexpr int kEvents = 256;
      epoll_event events[kEvents];
      const int ready = ::epoll_wait(epoll_, events, kEvents, 1000);
      // A server that says nothing for a second has lost a request.
      if (ready == 0) throw std::runtime_error("no reply came for a second");
      for (int i = 0; i < ready; ++i) {
        static_cast<LoadConnection*>(events[i].data.ptr)->go_on(result);
      }
      now = Clock::now();
    }
    result.elapsed = now - start;
    return result;
  }

 private:
  void watch(LoadConnection& connection) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &connection;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.descriptor(), &event);
  }

  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<LoadConnection> connections_;
};

}  // namespace

LoadResult run_load(Protocol protocol, std::uint16_t port, LoadShape shape, LoadTimes times,
                    const std::function<std::chrono::nanoseconds()>& server_cpu) {
  Load load(protocol, port, shape);
  load.run_until(Clock::now() + times.warm_up);
  const auto cpu_before = server_cpu();
  LoadResult result = load.run_until(Clock::now() + times.measured);
  result.server_cpu = server_cpu() - cpu_before;
  return result;
}

}  // namespace lockd::bench
