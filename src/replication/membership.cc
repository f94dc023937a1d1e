#include "replication/membership.h"

#include <algorithm>

#include "base/text.h"
#include "replication/records.h"

namespace lockd {

std::string to_text(const NodeRecord& record) {
  return "node=" + record.node + "\naddress=" + record.address +
         "\nleads=" + (record.leads ? "1" : "0") + "\napplied=" + std::to_string(record.applied) +
         "\nbehind=" + std::to_string(record.behind) +
         "\nversion=" + std::to_string(record.version) + "\nprogram=" + record.program +
         "\nnot_ready=" + record.not_ready + "\nincarnation=" + record.incarnation + "\n";
}

std::optional<NodeRecord> node_record_in(std::string_view text) {
  NodeRecord record;
  std::string leads;
  std::string applied;
  std::string behind;
  const bool is_complete =
      take_line(text, "node=", &record.node) && take_line(text, "address=", &record.address) &&
      take_line(text, "leads=", &leads) && take_line(text, "applied=", &applied) &&
      take_line(text, "behind=", &behind);
  const auto applied_number = parse_whole(applied, 0, UINT64_MAX);
  const auto behind_number = parse_whole(behind, 0, UINT64_MAX);
  if (!is_complete || !applied_number || !behind_number) return {};
  record.leads = leads == "1";
  record.applied = *applied_number;
  record.behind = *behind_number;
  record.version = version_of_record(text);
  record.program = line_of(text, "program=").value_or("");
  record.not_ready = line_of(text, "not_ready=").value_or(record.behind == 0 ? "" : "catching_up");
  record.incarnation = line_of(text, "incarnation=").value_or("");
  return record;
}

Time Membership::turn(Time now, const NodeRecord& self) {
  if (in_flight_) return Time::never();
  const bool is_change = self.not_ready != put_not_ready_;
  const Time due = put_at_ ? *put_at_ + (is_change ? kChangeInterval : kInterval) : now;
  if (now < due) return due;
  in_flight_ = true;
  put_at_ = now;
  put_not_ready_ = self.not_ready;
  const std::string own = context_.keys.nodes + self.node;
  etcd::Operation all = etcd::get(context_.keys.nodes);
  all.range_end = context_.keys.nodes_end;
  etcd::Txn txn{.then = {etcd::get(own), etcd::put(own, to_text(self)), all}};
  for (const auto& [key, node] : nodes_) {
    const bool gone = now - node.since > kSilenceMax && key != own;
    if (self.leads && gone) txn.then.push_back(etcd::erase(key));
  }
  context_.execute(txn, [this, now, incarnation = self.incarnation](const etcd::Answer& answer) {
    in_flight_ = false;
    log_rejection(answer);
    if (answer.status != etcd::Answer::Status::done) return;
    on_own_record(answer.found.front(), incarnation);
    on_records(answer.found.back(), now);
  });
  return Time::never();
}

// The record is the first key that a server puts, and a server that may not put can never lead.
// Logged once, until a put succeeds.
void Membership::log_rejection(const etcd::Answer& answer) {
  const bool refused = answer.status == etcd::Answer::Status::refused;
  why_not_written_ = refused ? "read_only" : "";
  if (answer.status == etcd::Answer::Status::no_space) why_not_written_ = "etcd_full";
  const bool is_known = refused_ || !refused;
  if (refused || answer.status == etcd::Answer::Status::done) refused_ = refused;
  if (is_known) return;
  context_.log(Severity::error,
               "etcd: this server may not write there (" + answer.message +
                   "), so it cannot lead; it needs the right to read and write all keys "
                   "that begin with " +
                   context_.keys.prefix);
}

// A record with the same text but a newer revision counts as a sign of life.
void Membership::on_records(const std::vector<etcd::Entry>& entries, Time now) {
  std::map<std::string, SeenNode> nodes;
  for (const etcd::Entry& entry : entries) {
    const auto record = node_record_in(entry.value);
    if (!record) continue;
    const auto before = nodes_.find(entry.key);
    const bool known = before != nodes_.end();
    const bool silent = known && before->second.modified == entry.modified;
    nodes[entry.key] = {*record, entry.modified, silent ? before->second.since : now,
                        known && (!silent || before->second.again),
                        known ? before->second.earlier : answers_ == 0};
  }
  nodes_ = std::move(nodes);
  ++answers_;
}

// Two servers of one name overwrite each other's record. If the record from before this node's
// first put appears again, a running server has put it, and this node is the later one.
void Membership::on_own_record(const std::vector<etcd::Entry>& before,
                               const std::string& incarnation) {
  const auto record = before.empty() ? std::nullopt : node_record_in(before.front().value);
  if (answers_ == 0) {
    predecessor_ = record;
  } else if (record.has_value() && predecessor_.has_value()) {
    const std::string& other = record->incarnation;
    predecessor_puts_ += other != incarnation && other == predecessor_->incarnation ? 1 : 0;
  }
}

std::optional<NodeRecord> Membership::name_conflict() const {
  return predecessor_puts_ >= kConflictPuts ? predecessor_ : std::nullopt;
}

std::uint32_t Membership::version() const {
  std::uint32_t lowest = UINT32_MAX;
  for (const auto& [key, node] : nodes_) lowest = std::min(lowest, node.record.version);
  return lowest;
}

std::string Membership::address_conflict(const NodeRecord& self) const {
  for (const auto& [key, node] : nodes_) {
    const NodeRecord& other = node.record;
    const bool counts = node.again && node.earlier && other.node != self.node;
    if (counts && other.address == self.address) return other.node;
  }
  return {};
}

std::vector<Member> Membership::members() const {
  std::vector<Member> members;
  for (const auto& [key, node] : nodes_) members.push_back({node.record, node.since});
  return members;
}

}  // namespace lockd
