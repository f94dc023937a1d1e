// LeaderDialer: the connection of one loop of a follower to the leader.
//
// It finds who leads, connects there, proves that this server belongs to the cluster and has the
// leader prove it too. Then the connection is a FollowerLink's. Where this server leads there is
// none. On one loop, and used by its thread only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "cluster/follower_link.h"
#include "cluster/membership_proof.h"
#include "net/connection.h"
#include "net/loop.h"
#include "server/server_context.h"

namespace lockd {

class LeaderDialer final : private Connection::Handler, private FollowerLink::Wire {
 public:
  // `name` is this loop's, in the whole cluster. All of them outlive it.
  LeaderDialer(Loop& loop, ServerContext& server, FollowerLink& link, std::string name);

  // With every tick of the loop.
  void tick();
  // What was written in this turn leaves.
  void flush();

 private:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t {
    idle,
    resolving,   // the leader's name
    connecting,  // and shaking hands, where there is TLS
    handshake,   // it awaits the leader's challenge
    proving,     // it awaits the leader's proof
    up,
  };

  // Of Connection::Handler and FollowerLink::Wire.
  void on_established() override { greet(); }
  std::size_t on_input(std::string_view unread) override;
  void on_all_sent() override { link_.on_all_sent(); }
  void on_end_of_input() override { fail("it closed the connection"); }
  void on_broken() override;
  std::string& output() override { return connection_->output(); }
  std::size_t unsent() const override { return connection_->unsent_size(); }

  void resolve();
  void connect(const std::vector<boost::asio::ip::tcp::endpoint>& found);
  void greet();
  void on_handshake_line(std::string_view line);
  void fail(std::string why);
  void drop();
  void log_refusal(std::string_view why);

  Loop& loop_;
  ServerContext& server_;
  FollowerLink& link_;
  const std::string name_;
  TokenSource secrets_;
  boost::asio::ip::tcp::resolver resolver_;
  State state_ = State::idle;
  CurrentLeader target_{};
  std::uint64_t attempts_ = 0;
  std::uint64_t resolutions_ = 0;
  Clock::time_point since_;  // when the attempt began
  Clock::time_point next_attempt_;
  Clock::time_point down_since_;
  Clock::time_point next_log_{};
  Challenge challenge_{};
  std::unique_ptr<Connection> connection_;           // null: there is none
  std::vector<std::unique_ptr<Connection>> closed_;  // with operations under way
};

}  // namespace lockd
