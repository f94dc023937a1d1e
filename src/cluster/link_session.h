// The leader's end of a link: a follower, whose clients are sessions of this host.
//
// First it is a client that says `peer`: its name and a challenge, then its proof. From then on
// there are frames, and each channel is the transport of one session. When the link breaks, its
// sessions leave every queue, and their holds last as long as their leases.
//
// Belongs to its host's thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cluster/channel_transport.h"
#include "cluster/cluster_links.h"
#include "cluster/membership_proof.h"
#include "cluster/peer_frame.h"
#include "protocol/line/line_framer.h"
#include "server/session/server_session.h"

namespace lockd {

class LinkSession final : public ServerSession {
 public:
  using Time = ChannelTransport::Time;

  using OnLoop = std::set<LinkSession*>;

  // In place of `client`, which has sent `peer`. Is one of `on_loop` while it lives. Both outlive
  // it.
  LinkSession(SessionContext& context, const ServerSession& client, ClusterLinks& links,
              OnLoop& on_loop);
  ~LinkSession() override;

  Protocol protocol() const override { return Protocol::line; }
  std::size_t on_bytes(std::string_view unread, std::string& out) override;
  bool on_event(const SessionEvent& event, std::string& out) override;
  // Detaches its clients.
  bool on_end(bool keep_holds, int* budget) override;
  bool carries_others() const override { return is_authenticated_; }
  std::size_t buffered() const override;

  // About once a second: ends silent clients, and sends the follower this server's clock.
  void tick(Time now);

  // For its channels.
  void send(FrameType type, SessionId client, std::string_view payload);
  void forget(SessionId client);

 private:
  void shake_hands(const RequestLines& lines, std::string& out);
  void accept(const std::string& link, std::string& out);
  void fail_attempt(std::string& out);
  void take(const Frame& frame);
  void open(const Frame& frame);

  ClusterLinks& links_;
  OnLoop& on_loop_;
  LineFramer framer_;
  Challenge challenge_{};
  std::string link_;  // the link's name, once it is proved
  std::string node_;  // the follower's
  boost::unordered_flat_map<SessionId, ChannelTransport*> channels_;  // by the follower's ids
};

}  // namespace lockd
