// Who leads, as the value of the leader's key: a line for each field.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "replication/etcd_client.h"

namespace lockd {

struct LeaderRecord {
  std::string incarnation;  // of one journal of one process; random
  std::string node;
  std::string address;  // for clients
  std::string policy;   // what must be the same on all nodes

  friend bool operator==(const LeaderRecord&, const LeaderRecord&) = default;
};

std::string to_text(const LeaderRecord& record);
std::optional<LeaderRecord> leader_record_in(std::string_view text);

// The one in force; of nobody when `epoch` is 0.
struct CurrentLeader {
  etcd::Revision epoch = 0;
  LeaderRecord record{};
};

}  // namespace lockd
