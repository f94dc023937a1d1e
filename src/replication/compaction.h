// Has etcd forget old revisions, and tells people when it refuses to.
//
// A compaction is of the whole store, so newer versions of etcd do it for the role root alone. A
// server without that role relies on etcd's own compaction. Whether there is any, shows: what was
// refused is found to be compacted later. When that is, is etcd's affair; but if it has not come
// when half of the store is in use, somebody must act before all of it is.
//
// Without a thread, and never waits. One call on its way at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "replication/etcd_client.h"
#include "replication/patience.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

class Compaction {
 public:
  // How often people are told of the same.
  static constexpr Duration kSilence = std::chrono::minutes(10);

  // All outlive it.
  Compaction(etcd::Client& client, const EtcdKeys& keys, const Patience& patience,
             ReplicationStats& stats, ClusterLog log);

  // Asks for one that changes nothing, to find out whether etcd would do it for this server. The
  // store is at `newest`, or further.
  void check_rights(etcd::Revision newest, Time now);
  // Whatever becomes of it: what is not compacted now is so with the next.
  void compact(etcd::Revision revision, Time now);
  bool is_on_its_way() const { return on_its_way_; }

 private:
  void ask(etcd::Revision revision, Time now);
  void take(const etcd::Answer& answer, Time now);
  void look_for_others(const std::string& refusal, Time now);
  void take_refusal(const std::string& refusal, const etcd::Answer& seen, Time now);
  void measure(const std::string& refusal, Time now);
  void tell(const std::string& refusal, Time now);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const Patience& patience_;
  ReplicationStats& stats_;
  const ClusterLog log_;

  bool on_its_way_ = false;
  bool is_check_ = false;
  etcd::Revision asked_ = 0;
  etcd::Revision newest_ = 0;   // when the rights were checked
  etcd::Revision refused_ = 0;  // the earliest that nobody was seen to compact; 0: none
  std::optional<Time> told_{};
};

}  // namespace lockd
