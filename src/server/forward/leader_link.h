// A follower's link to the leader: one connection, over which the clients of all loops ask.
//
// It looks who leads, connects there, proves that this server belongs to the cluster and has that
// proved to it, and says of every client who it is. What came between is asked again by those who
// asked: see Forwarder for how they hear, and LeaderChannel for what they do then.
//
// On one loop, and touched by its thread only. Where this server leads there is no link.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "net/connection.h"
#include "net/loop.h"
#include "server/forward/forwarder.h"
#include "server/forward/membership_proof.h"
#include "server/forward/peer_frame.h"
#include "server/server_context.h"

namespace lockd {

class LeaderLink final : private Connection::Handler {
 public:
  // Before the loop runs. Precondition: the server is one of several, and forwards.
  LeaderLink(Loop& loop, ServerContext& server);
  ~LeaderLink();

 private:
  using Clock = std::chrono::steady_clock;

  enum class State : std::uint8_t {
    idle,
    resolving,   // the leader's name
    connecting,  // and shaking hands, where there is TLS
    handshake,   // it has said `peer`, and awaits the challenge
    proving,     // it awaits the leader's proof
    up,
    here,  // this server leads
  };

  // One client.
  struct Channel {
    NewsReader* reader = nullptr;  // null: it has gone, and the leader may not know
    ForwardedClient client{};      // with its session at the leader, once that is known
  };

  // Of Connection::Handler.
  void on_established() override { greet(); }
  std::size_t on_input(std::string_view unread) override;
  void on_all_sent() override { send_mail(); }
  void on_end_of_input() override { fail("it closed the connection"); }
  void on_broken() override;

  void look_later();
  void look();
  void follow(const CurrentLeader& leader, Clock::time_point now);
  void stay_here();
  void resolve();
  void connect(const std::vector<boost::asio::ip::tcp::endpoint>& found);
  void greet();
  void take_handshake(std::string_view line);
  void be_up(std::uint64_t leader);
  void fail(std::string why);
  void drop();
  void give_up();

  void send_mail();
  void send(LeaderMail& mail);
  void introduce(LeaderMail& mail);
  void close(const LeaderMail& mail);
  void tell_state(NewsReader& reader, SessionId client) const;
  void tell_all(LeaderNews::What what);
  void take(const Frame& frame);
  void log_refusal(std::string_view why);
  bool has_room() const;

  Loop& loop_;
  ServerContext& server_;
  Forwarder& forwarder_;
  TokenSource secrets_;
  boost::asio::steady_timer timer_;
  boost::asio::ip::tcp::resolver resolver_;
  State state_ = State::idle;
  CurrentLeader target_{};
  std::uint64_t leader_ = 0;  // its incarnation, of which the channels' sessions are
  std::uint64_t attempts_ = 0;
  std::uint64_t resolutions_ = 0;
  std::uint64_t generations_ = 0;
  Clock::time_point since_;         // when the attempt began
  Clock::time_point next_attempt_;  // not before this
  Clock::time_point down_since_;
  Clock::time_point next_log_{};
  std::string why_down_;    // what the last attempt came to, if it is known
  bool is_absent_ = false;  // and so for so long that all were told that nobody leads
  Challenge challenge_{};
  std::unique_ptr<Connection> connection_;           // null: there is none
  std::vector<std::unique_ptr<Connection>> closed_;  // with operations under way
  std::map<SessionId, Channel> channels_;
  std::deque<LeaderMail> waiting_;  // for room in the connection
};

}  // namespace lockd
