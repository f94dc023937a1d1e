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
#include "server/session/server_session.h"
#include "service/leader_gate.h"

namespace lockd {

class ProxySession final : public ServerSession, private Channel::Client {
 public:
  // Opens a channel, or waits for one until `deadline`. The client connected to this server at
  // `connected`. The link outlives it.
  ProxySession(SessionContext& context, const ServerSession& client, ProxyRequest request,
               FollowerLink& link, Channel::Time connected, Channel::Time deadline);

  Protocol protocol() const override { return is_http_ ? Protocol::http : Protocol::line; }
  std::size_t on_bytes(std::string_view unread, std::string& out) override;
  bool on_event(const SessionEvent& event, std::string& out) override;
  bool on_end(bool keep_holds, int* budget) override;
  bool is_blocked() const override;
  // While nothing more is read of it, its end has to be looked for.
  bool needs_peer() const override { return !input_ended_ && channel_.room() == 0; }
  std::size_t buffered() const override { return channel_.in_flight() + request_.size(); }
  void succeed(std::unique_ptr<ServerSession> predecessor) override {
    predecessor_ = std::move(predecessor);
  }

 private:
  void end_input();
  void acknowledge(std::size_t unsent);

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
  bool is_answered_ = false;        // the reply has begun
  std::size_t unacknowledged_ = 0;  // bytes for the client that may not have left
  std::unique_ptr<ServerSession> predecessor_;
  Channel channel_;
};

}  // namespace lockd
