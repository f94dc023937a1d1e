// A follower's client whose bytes go to the leader.
//
// It takes the place of the session that the client had, and copies: lines from the first request
// that is the leader's on, or one HTTP request and its reply. When the leader is lost it closes the
// connection. A client that waited for a leader in vain, or has its reply, gets its session back.
//
// Belongs to its host's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/follower_link.h"
#include "server/session/leader_gate.h"
#include "server/session/server_session.h"

namespace lockd {

class ProxySession final : public ServerSession, private Channel::Client {
 public:
  // Opens a channel, or waits for one until `deadline`. The client connected to this server at
  // `connected`. The link outlives it.
  ProxySession(SessionContext& context, const ServerSession& client, ProxyRequest request,
               FollowerLink& link, Channel::Time connected, Channel::Time deadline);

  Protocol protocol() const override { return is_http_ ? Protocol::http : Protocol::line; }
  std::size_t take_in(std::string_view unread, std::string& out) override;
  bool blocked() const override;
  // While nothing more is read of it, its end has to be looked for.
  bool needs_peer() const override { return !input_ended_ && channel_.room() == 0; }
  bool may_be_silent() override { return true; }
  std::uint64_t request_under_way() const override { return 0; }
  bool has_proved() const override { return true; }
  std::size_t buffered() const override { return channel_.in_flight() + request_.size(); }
  void replace(std::unique_ptr<ServerSession> last) override { last_ = std::move(last); }
  void on_end_of_input() override;
  void on_sent(std::size_t unsent) override;
  void on_leaving(bool detaches) override;
  void drain(std::string&) override { fate_ = Fate::closes; }
  bool end(bool keep_holds, int* budget) override;

  void end_pause(std::string&) override {}
  void on_wait_done(const WaitResult&, std::string&) override {}
  void report(const ReportPiece&, std::string&) override {}
  void on_published(std::size_t, std::string&) override {}
  bool signalled(const Signal&, std::string&) override { return true; }
  void turn_away(std::string&) override {}
  void time_out(bool, std::string&) override {}
  void on_certificate(const CertificateNames&) override {}

 private:
  bool is_told_unasked() const override { return false; }  // the leader judges what it may receive

  void on_channel_open() override;
  void on_channel_bytes(std::string_view bytes) override;
  void on_channel_room() override;
  void on_channel_end(Channel::End end) override;
  void send_request();
  void give_back(const HttpError& error);
  void go_on();

  const bool is_http_;
  std::string request_;   // what is still to be sent of the HTTP request
  std::size_t left_ = 0;  // bytes of lines that came and are still to be sent
  bool input_ended_ = false;
  bool is_answered_ = false;             // the reply has begun
  std::size_t unacknowledged_ = 0;       // bytes for the client that may not have left
  std::unique_ptr<ServerSession> last_;  // the session that it has replaced
  Channel channel_;
};

}  // namespace lockd
