// Hand-over of a leader that stops, or that an operator asked to transfer the lead to another node.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replication/membership.h"
#include "replication/replicated_journal.h"

namespace lockd {

using etcd::Answer;
using Status = Answer::Status;

namespace {

constexpr Duration kTimeToNotify = std::chrono::milliseconds(20);
constexpr Duration kTimeToFinish = std::chrono::milliseconds(500);
// A transfer that takes longer is cancelled, because the operator does not expect it any more.
constexpr Duration kTransferMax = std::chrono::seconds(10);

}  // namespace

bool ReplicatedJournal::transfer(const std::string& node) {
  if (!is_open_for_clients()) return false;
  MutexLock lock(successor_mutex_);
  successor_ = node;
  transfers_.store(true, std::memory_order_release);
  return true;
}

bool ReplicatedJournal::is_to_hand_over() const {
  return resigns_.load(std::memory_order_acquire) || !ready_successor_.empty();
}

std::string ReplicatedJournal::successor() {
  MutexLock lock(successor_mutex_);
  return successor_;
}

// Reads the successor's record again, because the known one is a second old. If that node could not
// lead, there would be no leader for a while, and this node might be unable to read the chain.
void ReplicatedJournal::check_successor(Time now) {
  if (checks_successor_ || !ready_successor_.empty() || now < next_successor_check_) return;
  const std::string node = successor();
  if (!transfer_seen_at_) transfer_seen_at_ = now;
  if (now > *transfer_seen_at_ + kTransferMax)
    return cancel_transfer(node, "etcd does not say how it is");
  checks_successor_ = true;
  next_successor_check_ = now + options_.retry;
  client_.execute({.then = {etcd::get(keys_.nodes + node)}}, timeouts_.deadline(),
                  [this, node](const Answer& answer) { on_successor(node, answer); });
}

void ReplicatedJournal::on_successor(const std::string& node, const Answer& answer) {
  checks_successor_ = false;
  if (answer.status != Status::done) return;
  const auto& found = answer.found.front();
  const auto record = found.empty() ? std::nullopt : node_record_in(found.front().value);
  if (record.has_value() && record->is_ready()) {
    ready_successor_ = node;
    return;
  }
  cancel_transfer(node, "it could not lead" + (record.has_value() ? ": " + record->not_ready : ""));
}

void ReplicatedJournal::cancel_transfer(const std::string& node, const std::string& why) {
  transfers_.store(false, std::memory_order_release);
  transfer_seen_at_.reset();
  options_.log(Severity::warning, "cluster: does not hand over to " + node + ": " + why);
}

// Appends that are pending are finished first, and a moment later clients have their answers. A
// limit of time keeps busy clients from delaying the hand-over. durable() is 0 before the leader's
// key may be erased.
Time ReplicatedJournal::hand_over(Time now) {
  constexpr int kTriesMax = 4;
  if (!resigned_at_.has_value()) resigned_at_ = now;
  const bool all_sent = !leads_ || (term_->is_idle() && pending_->size() == 0);
  const Time soonest = *resigned_at_ + kTimeToNotify;
  if (!handing_over_ && now < soonest) return soonest;
  const Time latest = *resigned_at_ + kTimeToFinish;
  if (!handing_over_ && !all_sent && now < latest) return latest;
  if (hand_over_tries_ == kTriesMax && now >= next_hand_over_) {
    end("the hand-over failed: etcd did not answer");
  }
  if (now < next_hand_over_ || !over_.empty()) return next_hand_over_;
  handing_over_ = true;
  ++hand_over_tries_;
  certain_until_ns_.store(0, std::memory_order_release);
  next_hand_over_ = now + timeouts_.retry_after() + options_.retry;
  // The successor is put before the erasure, so every watch delivers its name first. A full etcd
  // rejects puts and still accepts erasures.
  std::vector<etcd::Operation> then{etcd::erase(keys_.leader)};
  if (!ready_successor_.empty() && !etcd_is_full_) {
    then.insert(then.begin(), etcd::put(keys_.successor, successor_text(ready_successor_)));
  }
  client_.execute(term_->guarded(std::move(then)), timeouts_.deadline(),
                  [this](const Answer& answer) {
                    etcd_is_full_ = answer.status == Status::no_space;
                    if (term_->check_guard(answer)) end("it has handed over");
                  });
  return next_hand_over_;
}

}  // namespace lockd
