// Where clients come in by one listening socket: accepting, and what to do when there are no
// descriptors left.
//
// There is one for each port, on one loop: were every loop to watch the port, each connection would
// wake them all. Whoever has accepted hands the connection to the loop that serves it. Touched by
// the loop's thread only, but before that has started.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/descriptor.h"
#include "net/loop.h"
#include "server/worker_stats.h"

namespace lockd {

class Acceptor final : private Loop::Watched {
 public:
  // A client's socket, and its address.
  using Admit = std::function<void(Descriptor socket, const boost::asio::ip::tcp::endpoint& peer)>;

  // `listening` does not block.
  Acceptor(Loop& loop, Descriptor listening, WorkerStats& stats, Admit admit);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // False when the system cannot watch the port.
  bool open();
  void close();

 private:
  enum class Took : std::uint8_t { one, nobody, no_descriptor, no_memory };

  void on_ready(unsigned) override { accept_some(); }
  void accept_some();
  Took accept_one();
  Took refuse_one();
  void go_on_next_turn();
  void go_on_later();
  void note_refusal();

  Loop& loop_;
  WorkerStats& stats_;
  const Admit admit_;
  Descriptor listening_;
  Descriptor reserve_;  // to refuse by when there is no other
  bool goes_on_ = false;
  boost::asio::steady_timer pause_;
  std::chrono::steady_clock::time_point next_refusal_log_{};
};

}  // namespace lockd
