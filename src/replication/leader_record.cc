#include "replication/leader_record.h"

namespace lockd {

std::string to_text(const LeaderRecord& record) {
  return "incarnation=" + record.incarnation + "\nnode=" + record.node +
         "\naddress=" + record.address + "\npolicy=" + record.policy + "\n";
}

std::optional<LeaderRecord> leader_record_in(std::string_view text) {
  LeaderRecord record;
  if (!take_line(text, "incarnation=", &record.incarnation)) return {};
  if (!take_line(text, "node=", &record.node)) return {};
  if (!take_line(text, "address=", &record.address)) return {};
  if (!take_line(text, "policy=", &record.policy)) return {};
  return record;
}

}  // namespace lockd
