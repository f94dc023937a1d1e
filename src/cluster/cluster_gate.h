// ClusterGate: the LeaderGate of one loop of a server that is one of several.
//
// It has this loop's link to the leader while the server follows, and looks after the links of
// other servers' loops while it leads.
#pragma once

#include <memory>
#include <string>

#include "cluster/cluster_links.h"
#include "cluster/follower_link.h"
#include "cluster/leader_dialer.h"
#include "cluster/link_session.h"
#include "server/server_context.h"
#include "service/leader_gate.h"

namespace lockd {

class ClusterGate final : public LeaderGate {
 public:
  // `number` is this loop's. The loop and the server outlive it.
  ClusterGate(Loop& loop, ServerContext& server, std::shared_ptr<ClusterLinks> links, int number);

  bool follows() const override;
  bool reaches_leader() const override { return link_.is_up(); }
  std::string leader_address() const override;
  std::string leader_http_address() const override;
  void confirm(Batch& batch) override { batch.barrier(); }
  std::unique_ptr<ServerSession> proxy(SessionContext& context, ServerSession& client,
                                       ProxyRequest request) override;
  std::unique_ptr<ServerSession> accept_link(SessionContext& context,
                                             ServerSession& client) override;
  void tick() override;
  void end_turn() override;

 private:
  ServerContext& server_;
  const std::shared_ptr<ClusterLinks> links_;
  FollowerLink link_;
  std::unique_ptr<LeaderDialer> dialer_;  // null: nothing is forwarded
  LinkSession::OnLoop accepted_;          // links of other servers, proved or not
  std::uint64_t ticks_ = 0;
};

// The gates of one server, one after the other. See ClusterSupport.
MakeGate make_cluster_gates();

}  // namespace lockd
