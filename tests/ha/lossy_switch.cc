// A network switch in user space, which loses, delays and reorders frames: the kernel may have no
// netem, and this asks for nothing but raw sockets.
//
//   lossy_switch SEED INTERFACE...
//
// Each interface is a port; nobody else uses them. Rules come by standard input, a line each, and
// each is answered by `ok` when it is in force:
//
//   FROM TO LOSS LEAST MOST
//
// Of frames that come in at an interface whose name begins with FROM and leave by one that begins
// with TO, LOSS percent vanish, and the others leave after LEAST to MOST milliseconds, each after
// its own: so they overtake each other. The last rule that matches counts; `*` begins every name.
// At the end of its input it ends.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Address = std::array<char, ETH_ALEN>;
using std::chrono::microseconds;

// With each frame goes what the kernel has yet to do to it, sum it up or cut it into segments: a
// struct virtio_net_hdr, whose header C++ does not take.
constexpr std::size_t kHead = 10;
constexpr std::size_t kFrameMax = kHead + 128 * 1024;
// What is under way; beyond that a frame is lost, as in any switch.
constexpr std::size_t kBytesMax = 64 << 20;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "lossy_switch: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

struct Port {
  std::string name;
  int socket;
};

int open_port(const char* name) {
  const int port = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (port < 0) fail("no raw sockets");
  const int on = 1;
  // Frames that it has sent itself would come in again.
  if (::setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
      ::setsockopt(port, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0) {
    fail("raw sockets lack what is needed");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(name));
  if (::bind(port, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail(name);
  return port;
}

struct Rule {
  std::string from;
  std::string to;
  double lost = 0;  // of 1
  microseconds least{0};
  microseconds most{0};

  static bool covers(const std::string& prefix, const std::string& name) {
    return prefix == "*" || name.starts_with(prefix);
  }
  bool matches(const Port& in, const Port& out) const {
    return covers(from, in.name) && covers(to, out.name);
  }
};

struct Frame {
  Clock::time_point due;
  std::uint64_t number;  // of equal times the first goes first
  std::size_t out;
  std::string bytes;

  bool operator>(const Frame& other) const {
    return std::pair(due, number) > std::pair(other.due, other.number);
  }
};

class Switch {
 public:
  Switch(std::uint64_t seed, const std::vector<const char*>& names) : chance_(seed) {
    for (const char* name : names) {
      ports_.push_back({name, open_port(name)});
      polled_.push_back({ports_.back().socket, POLLIN, 0});
    }
    polled_.push_back({STDIN_FILENO, POLLIN, 0});
  }

  void run() {
    while (is_wanted_) {
      await();
      if (polled_.back().revents != 0) read_rules();
      for (std::size_t port = 0; port < ports_.size(); ++port) {
        if (polled_[port].revents != 0) receive(port);
      }
      send_due();
    }
  }

 private:
  void await() {
    const auto left = under_way_.empty() ? std::chrono::nanoseconds(std::chrono::hours(1))
                                         : under_way_.top().due - Clock::now();
    const auto ns = std::max<std::int64_t>(left.count(), 0);
    const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
    if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) < 0 && errno != EINTR) {
      fail("ppoll");
    }
  }

  void receive(std::size_t in) {
    constexpr int kAtOnce = 64;
    for (int i = 0; i < kAtOnce; ++i) {
      const ssize_t size = ::recv(ports_[in].socket, buffer_.data(), buffer_.size(), 0);
      if (size < static_cast<ssize_t>(kHead + ETH_HLEN)) return;  // or the interface is down
      forward(in, {buffer_.data(), static_cast<std::size_t>(size)});
    }
  }

  // To where its receiver was last seen, or to everybody.
  void forward(std::size_t in, std::string_view bytes) {
    Address to;
    Address from;
    std::copy_n(bytes.begin() + kHead, ETH_ALEN, to.begin());
    std::copy_n(bytes.begin() + kHead + ETH_ALEN, ETH_ALEN, from.begin());
    seen_[from] = in;
    const auto found = seen_.find(to);
    for (std::size_t out = 0; out < ports_.size(); ++out) {
      if (out != in && (found == seen_.end() || found->second == out)) enqueue(in, out, bytes);
    }
  }

  void enqueue(std::size_t in, std::size_t out, std::string_view bytes) {
    const auto rule = std::find_if(rules_.rbegin(), rules_.rend(), [&](const Rule& candidate) {
      return candidate.matches(ports_[in], ports_[out]);
    });
    auto delay = microseconds(0);
    if (rule != rules_.rend()) {
      if (std::uniform_real_distribution<>()(chance_) < rule->lost) return;
      delay = microseconds(std::uniform_int_distribution<std::int64_t>(
          rule->least.count(), rule->most.count())(chance_));
    }
    if (delay.count() == 0) return send(out, bytes);
    if (bytes_under_way_ + bytes.size() > kBytesMax) return;
    bytes_under_way_ += bytes.size();
    under_way_.push({Clock::now() + delay, ++frames_, out, std::string(bytes)});
  }

  void send_due() {
    const Clock::time_point now = Clock::now();
    while (!under_way_.empty() && under_way_.top().due <= now) {
      const Frame& frame = under_way_.top();
      send(frame.out, frame.bytes);
      bytes_under_way_ -= frame.bytes.size();
      under_way_.pop();
    }
  }

  // Where that fails it is lost: the interface is down, or has no room.
  void send(std::size_t out, std::string_view bytes) {
    (void)!::send(ports_[out].socket, bytes.data(), bytes.size(), 0);
  }

  void read_rules() {
    std::array<char, 4096> text;
    const ssize_t size = ::read(STDIN_FILENO, text.data(), text.size());
    if (size <= 0) {
      is_wanted_ = false;
      return;
    }
    input_.append(text.data(), static_cast<std::size_t>(size));
    for (std::size_t end; (end = input_.find('\n')) != std::string::npos;) {
      take_rule(input_.substr(0, end));
      input_.erase(0, end + 1);
    }
  }

  void take_rule(const std::string& line) {
    std::istringstream words(line);
    Rule rule;
    double loss = 0;
    double least_ms = 0;
    double most_ms = 0;
    const bool is_one = !!(words >> rule.from >> rule.to >> loss >> least_ms >> most_ms);
    if (!is_one || loss < 0 || loss > 100 || least_ms < 0 || most_ms < least_ms) {
      std::fprintf(stderr, "lossy_switch: no rule: %s\n", line.c_str());
      std::exit(2);
    }
    rule.lost = loss / 100;
    rule.least = microseconds(static_cast<std::int64_t>(least_ms * 1000));
    rule.most = microseconds(static_cast<std::int64_t>(most_ms * 1000));
    std::erase_if(rules_, [&](const Rule& old) {
      return (rule.from == "*" || rule.from == old.from) && (rule.to == "*" || rule.to == old.to);
    });
    rules_.push_back(std::move(rule));
    std::puts("ok");
    std::fflush(stdout);
  }

  std::mt19937_64 chance_;
  std::vector<Port> ports_;
  std::vector<pollfd> polled_;  // the ports, and standard input
  std::vector<Rule> rules_;
  std::map<Address, std::size_t> seen_;
  std::priority_queue<Frame, std::vector<Frame>, std::greater<>> under_way_;
  std::size_t bytes_under_way_ = 0;
  std::uint64_t frames_ = 0;
  std::vector<char> buffer_ = std::vector<char>(kFrameMax);
  std::string input_;
  bool is_wanted_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: lossy_switch SEED INTERFACE INTERFACE...\n");
    return 2;
  }
  Switch it(std::strtoull(argv[1], nullptr, 10), {argv + 2, argv + argc});
  std::puts("ok");
  std::fflush(stdout);
  it.run();
}
