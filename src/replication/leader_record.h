// Who leads, as the value of the leader's key. As all records in etcd it is lines of
// "<name>=<value>", in a fixed order: whoever looks with etcdctl can read them. Lines that a later
// version adds behind them are passed over.
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

// Takes the line "<name><value>" from the front of `text`. False if another is there.
inline bool take_line(std::string_view& text, std::string_view name, std::string* value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return false;
  *value = text.substr(name.size(), end - name.size());
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace lockd
