#include "replication/hand_over.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "replication/membership.h"

namespace lockd {

using Status = etcd::Answer::Status;

constexpr Duration kTimeToNotify = std::chrono::milliseconds(20);
constexpr Duration kTimeToFinish = std::chrono::milliseconds(500);
// A transfer that takes longer is cancelled, because the operator does not expect it any more.
constexpr Duration kTransferMax = std::chrono::seconds(10);
constexpr int kTriesMax = 4;

// Pending appends are finished first, and a moment later clients have their answers. A limit of
// time keeps busy clients from delaying that. Nothing is durable before the leader's key may be
// erased.
Time HandOver::turn(Time now, LeaderGuard& guard, PublishedJournal& journal, bool is_idle) {
  check_successor(now);
  if (!is_active()) return Time::never();
  if (!began_at_.has_value()) began_at_ = now;
  if (!erasing_ && now < *began_at_ + kTimeToNotify) return *began_at_ + kTimeToNotify;
  if (!erasing_ && !is_idle && now < *began_at_ + kTimeToFinish) return *began_at_ + kTimeToFinish;
  if (now < next_try_ || !outcome_.empty()) return next_try_;
  if (tries_++ == kTriesMax) {
    outcome_ = "the hand-over failed: etcd did not answer";
    return now;
  }
  erasing_ = true;
  journal.withdraw();
  next_try_ = now + context_.timeouts.retry_after() + context_.retry;
  // The successor is put before the erasure, so every watch delivers its name first. A full etcd
  // rejects puts and still accepts erasures.
  std::vector<etcd::Operation> then{etcd::erase(context_.keys.leader)};
  if (!successor_.empty() && !etcd_is_full_) {
    then.insert(then.begin(), etcd::put(context_.keys.successor, successor_text(successor_)));
  }
  context_.execute(guard.txn(std::move(then)), [this, &guard](const etcd::Answer& answer) {
    etcd_is_full_ = answer.status == Status::no_space;
    if (guard.check(answer) && outcome_.empty()) outcome_ = "it has handed over";
  });
  return next_try_;
}

// Reads the successor's record again, because the known one is a second old. If that node could not
// lead, there would be no leader for a while, and this node might be unable to read the chain.
void HandOver::check_successor(Time now) {
  if (checking_ || !successor_.empty() || now < next_check_) return;
  const std::string node = requested();
  if (node.empty()) return;
  if (!requested_at_) requested_at_ = now;
  if (now > *requested_at_ + kTransferMax) {
    return cancel_transfer(node, "etcd does not say how it is");
  }
  checking_ = true;
  next_check_ = now + context_.retry;
  context_.execute({.then = {etcd::get(context_.keys.nodes + node)}},
                   [this, node](const etcd::Answer& answer) { on_successor(node, answer); });
}

void HandOver::on_successor(const std::string& node, const etcd::Answer& answer) {
  checking_ = false;
  if (answer.status != Status::done) return;
  const auto& found = answer.found.front();
  const auto record = found.empty() ? std::nullopt : node_record_in(found.front().value);
  if (record.has_value() && record->is_ready()) {
    successor_ = node;
    return;
  }
  cancel_transfer(node, "it could not lead" + (record.has_value() ? ": " + record->not_ready : ""));
}

void HandOver::cancel_transfer(const std::string& node, const std::string& why) {
  transfer("");
  requested_at_.reset();
  context_.log(Severity::warning, "cluster: does not hand over to " + node + ": " + why);
}

}  // namespace lockd
