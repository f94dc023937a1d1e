// The leader's end of a link: another server of the cluster, which speaks for clients of its own.
//
// Each of them is a LineSession of this host, whose transport is a channel of the link. They are
// told apart by the ids that they have there. When the link breaks they are detached: they leave
// every queue, and their holds wait for them, as long as their leases last.
//
// Belongs to its host's thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/forward/peer_frame.h"
#include "server/session/line_session.h"
#include "server/session/server_session.h"
#include "server/session/transport.h"

namespace lockd {

class PeerSession;

// A channel of the link, as the transport of its client's session. What the client's server has not
// said that the client has taken is unsent.
class ForwardedTransport final : public Transport {
 public:
  ForwardedTransport(PeerSession& link, SessionHost& host, SessionId client)
      : link_(link), host_(host), client_(client) {}

  // From the link.
  void receive(std::string_view bytes);
  void on_taken(std::uint64_t bytes) { untaken_ -= std::min(untaken_, bytes); }
  void end_input();
  LineSession& line_session() { return *line_session_; }
  void carry(LineSession& session) { line_session_ = &session; }

  std::string& output() override { return output_; }
  void flush() override { send(output_.size()); }
  void cork() override { corked_ = output_.size(); }
  bool uncork() override;
  std::uint64_t said() const override { return sent_ + output_.size(); }
  void unsay(std::uint64_t from) override;
  void resume_input() override { receive({}); }
  bool has_unread() const override { return !unread_.empty(); }
  bool input_pending() const override {
    return is_resuming_ || (is_held_back() && !unread_.empty());
  }
  bool peer_has_left() const override { return input_ended_; }
  bool has_room_for_signal() override;
  bool has_room_for_event() const override;
  bool has_room_for_report() const override;
  void on_turn_end() override;
  void on_session_end() override;
  void close_gently() override;
  void close() override;
  bool is_idle() const override { return is_closed_; }

 private:
  void send(std::size_t size);
  void count_unread();
  std::uint64_t unsent() const { return untaken_ + output_.size(); }

  PeerSession& link_;
  SessionHost& host_;
  const SessionId client_;  // over there
  LineSession* line_session_ = nullptr;
  std::string unread_;
  std::string output_;
  std::size_t corked_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t untaken_ = 0;
  std::size_t counted_ = 0;  // of what is unread, with the link
  bool input_ended_ = false;
  bool is_resuming_ = false;
  bool is_closed_ = false;
  bool is_linked_ = true;  // the link knows of it
};

class PeerSession final : public ServerSession {
 public:
  // More than any server has descriptors for.
  static constexpr std::size_t kChannelsMax = 1 << 20;

  PeerSession(SessionContext& context, SessionId id, Peer peer, std::string node);

  Protocol protocol() const override { return Protocol::line; }
  std::size_t take_in(std::string_view unread, std::string& out) override;
  bool blocked() const override { return false; }
  bool needs_peer() const override { return false; }
  bool may_be_silent() override { return true; }
  std::uint64_t request_under_way() const override { return 0; }
  bool has_proved() const override { return true; }
  bool carries_others() const override { return true; }
  std::size_t buffered() const override { return buffered_; }

  void end_pause(std::string&) override {}
  void on_wait_done(const WaitResult&, std::string&) override {}
  void report(const ReportPiece&, std::string&) override {}
  void on_published(std::size_t, std::string&) override {}
  bool signalled(const Signal&, std::string&) override { return true; }
  void turn_away(std::string&) override {}
  void time_out(bool, std::string&) override {}
  void drain(std::string&) override {}
  void on_certificate(const CertificateNames&) override {}
  // Detaches its clients.
  bool end(bool keep_holds, int* budget) override;

  // For its channels.
  void send(FrameType type, SessionId client, std::string_view payload);
  void forget(SessionId client) { channels_.erase(client); }
  void count_buffered(std::size_t before, std::size_t now) { buffered_ += now - before; }

 private:
  using Channels = boost::unordered_flat_map<SessionId, ForwardedTransport*>;

  bool is_told_unasked() const override { return false; }
  void take(const Frame& frame, std::string& out);
  void open(const Frame& frame, std::string& out);
  SessionId session_for(const ForwardedClient& client) const;
  void close(ForwardedTransport& channel, FrameType how);

  const std::string node_;
  Channels channels_;
  std::size_t buffered_ = 0;
};

}  // namespace lockd
