#include "replication/membership.h"

#include <algorithm>

#include "base/text.h"
#include "replication/records.h"

namespace lockd {

using etcd::Answer;

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
  if (!take_line(text, "node=", &record.node)) return {};
  if (!take_line(text, "address=", &record.address)) return {};
  if (!take_line(text, "leads=", &leads)) return {};
  if (!take_line(text, "applied=", &applied)) return {};
  if (!take_line(text, "behind=", &behind)) return {};
  const auto applied_number = parse_whole(applied, 0, UINT64_MAX);
  const auto behind_number = parse_whole(behind, 0, UINT64_MAX);
  if (!applied_number || !behind_number) return {};
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
  if (asking_) return Time::never();
  const bool is_news = self.not_ready != said_not_ready_;
  const Time due = said_at_ ? *said_at_ + (is_news ? kNewsInterval : kInterval) : now;
  if (now < due) return due;
  asking_ = true;
  said_at_ = now;
  said_not_ready_ = self.not_ready;
  const std::string own = keys_.nodes + self.node;
  etcd::Operation all = etcd::get(keys_.nodes);
  all.range_end = keys_.nodes_end;
  etcd::Txn txn{.then = {etcd::get(own), etcd::put(own, to_text(self)), all}};
  for (const auto& [key, heard] : heard_) {
    const bool gone = now - heard.since > kSilenceMax && key != own;
    if (self.leads && gone) txn.then.push_back(etcd::erase(key));
  }
  client_.execute(txn, patience_.deadline(),
                  [this, now, incarnation = self.incarnation](const Answer& answer) {
                    asking_ = false;
                    tell(answer);
                    if (answer.status != Answer::Status::done) return;
                    take_own(answer.found.front(), incarnation);
                    take(answer.found.back(), now);
                  });
  return Time::never();
}

// It is the first that a server puts, and one that may not put can never lead. Said once, until it
// may.
void Membership::tell(const Answer& answer) {
  const bool refused = answer.status == Answer::Status::refused;
  why_not_written_ = refused ? "read_only" : "";
  if (answer.status == Answer::Status::no_space) why_not_written_ = "etcd_full";
  const bool is_known = refused_ || !refused;
  if (refused || answer.status == Answer::Status::done) refused_ = refused;
  if (is_known) return;
  log_(Severity::error, "etcd: this server may not write there (" + answer.message +
                            "), so it cannot lead; it needs the right to read and write all keys "
                            "that begin with " +
                            keys_.prefix);
}

// Somebody who says the same again is heard of all the same: the revision is another.
void Membership::take(const std::vector<etcd::Entry>& entries, Time now) {
  std::map<std::string, Heard> heard;
  for (const etcd::Entry& entry : entries) {
    const auto record = node_record_in(entry.value);
    if (!record) continue;
    const auto before = heard_.find(entry.key);
    const bool known = before != heard_.end();
    const bool silent = known && before->second.modified == entry.modified;
    heard[entry.key] = {*record, entry.modified, silent ? before->second.since : now,
                        known && (!silent || before->second.again),
                        known ? before->second.earlier : answers_ == 0};
  }
  heard_ = std::move(heard);
  ++answers_;
}

// Both put over what the other has put. So what was there before this node's first record, and is
// there again, has been put since by a server that lives; and of the two this one came later, for
// the other found nothing of it at first.
void Membership::take_own(const std::vector<etcd::Entry>& before, const std::string& incarnation) {
  const auto record = before.empty() ? std::nullopt : node_record_in(before.front().value);
  if (answers_ == 0) {
    predecessor_ = record;
  } else if (record.has_value() && predecessor_.has_value()) {
    const std::string& other = record->incarnation;
    predecessor_again_ += other != incarnation && other == predecessor_->incarnation ? 1 : 0;
  }
}

std::optional<NodeRecord> Membership::namesake() const {
  return predecessor_again_ >= kNamesakeSays ? predecessor_ : std::nullopt;
}

std::uint32_t Membership::version() const {
  std::uint32_t lowest = UINT32_MAX;
  for (const auto& [key, heard] : heard_) lowest = std::min(lowest, heard.record.version);
  return lowest;
}

std::string Membership::who_else_is_at(const NodeRecord& self) const {
  for (const auto& [key, heard] : heard_) {
    const NodeRecord& other = heard.record;
    const bool counts = heard.again && heard.earlier && other.node != self.node;
    if (counts && other.address == self.address) return other.node;
  }
  return {};
}

std::vector<Member> Membership::members() const {
  std::vector<Member> members;
  for (const auto& [key, heard] : heard_) members.push_back({heard.record, heard.since});
  return members;
}

}  // namespace lockd
