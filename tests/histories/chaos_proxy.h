// Stands between clients and servers, and does to their bytes what a bad network does.
//
// One thread of its own. Links are chosen at random by whoever breaks something.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "histories/operation.h"

namespace lockd::histories {

class ChaosProxy {
 public:
  enum class LinkFault : std::uint8_t {
    cut,         // both sides are reset
    half_close,  // the server sees the end of the client's input
    delay,       // everything comes later
    split,       // every byte is a segment of its own
    stall_up,    // nothing reaches the server for a while
    stall_down,  // nothing reaches the client for a while
    truncate,    // cut after a few more bytes, somewhere within a message
  };
  static constexpr std::size_t kFaults = 7;
  static std::string_view name_of(LinkFault fault);

  struct Upstream {
    std::uint16_t port = 0;  // 0: nobody is there
    std::uint32_t life = 0;
  };

  explicit ChaosProxy(std::uint64_t seed);
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  // The port to connect to instead. `server` is whose links are meant when something is broken.
  // Before start().
  std::uint16_t listen(std::uint16_t server, std::function<Upstream()> upstream);
  void start();

  // Does that to one in `one_in` of the server's links, for so long where it lasts. It is done on
  // return.
  void inject(LinkFault fault, std::uint16_t server, unsigned one_in, Instant lasting);
  // Which life of its server the client with that port was connected to.
  std::uint32_t life_of(std::uint16_t client_port) const;

 private:
  class Link;
  struct Acceptor {
    int socket;
    std::uint16_t server;
    std::function<Upstream()> upstream;
  };
  struct Injection {
    LinkFault fault;
    std::uint16_t server;
    unsigned one_in;
    Instant until;
  };

  void run();
  void accept(const Acceptor& acceptor);
  void inject(const Injection& injection);
  void inject_all();
  void tick();

  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  int epoll_ = -1;
  std::mt19937_64 random_;
  std::unordered_map<int, std::shared_ptr<Link>> links_;  // by either descriptor
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::condition_variable injected_;
  std::vector<Injection> injections_;
  std::uint64_t injections_made_ = 0;
  std::uint64_t injections_done_ = 0;
  std::unordered_map<std::uint16_t, std::uint32_t> lives_;
  std::thread thread_;
};

}  // namespace lockd::histories
