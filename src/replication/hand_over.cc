// How a leader hands over: because it is stopped, or to a server that an operator has named.
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

constexpr Duration kTimeToTell = std::chrono::milliseconds(20);
constexpr Duration kTimeToFinish = std::chrono::milliseconds(500);
// Whoever asked for a transfer does not expect it any more after that.
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
  return resigns_.load(std::memory_order_acquire) || !fit_successor_.empty();
}

std::string ReplicatedJournal::successor() {
  MutexLock lock(successor_mutex_);
  return successor_;
}

// What is known of it is a second old. Should it be wrong, there is nobody to lead for a while, and
// what this server would have to read anew it may not be able to read.
void ReplicatedJournal::check_successor(Time now) {
  if (checks_successor_ || !fit_successor_.empty() || now < next_successor_check_) return;
  const std::string node = successor();
  if (!asked_to_transfer_) asked_to_transfer_ = now;
  if (now > *asked_to_transfer_ + kTransferMax) return stay(node, "etcd does not say how it is");
  checks_successor_ = true;
  next_successor_check_ = now + options_.retry;
  client_.execute({.then = {etcd::get(keys_.nodes + node)}}, patience_.deadline(),
                  [this, node](const Answer& answer) { take_successor(node, answer); });
}

void ReplicatedJournal::take_successor(const std::string& node, const Answer& answer) {
  checks_successor_ = false;
  if (answer.status != Status::done) return;
  const auto& found = answer.found.front();
  const auto record = found.empty() ? std::nullopt : node_record_in(found.front().value);
  if (record.has_value() && record->is_ready()) {
    fit_successor_ = node;
    return;
  }
  stay(node, "it could not lead" + (record.has_value() ? ": " + record->not_ready : ""));
}

void ReplicatedJournal::stay(const std::string& node, const std::string& why) {
  transfers_.store(false, std::memory_order_release);
  asked_to_transfer_.reset();
  options_.log(Severity::warning, "cluster: does not hand over to " + node + ": " + why);
}

// What is pending goes first, and a moment is left to tell of it. But clients that go on asking
// cannot keep it from handing over. From when the leader's key may be gone, nothing is told.
Time ReplicatedJournal::hand_over(Time now) {
  constexpr int kTriesMax = 4;
  if (!resigned_at_.has_value()) resigned_at_ = now;
  const bool all_sent = !leads_ || (term_->is_idle() && pending_->size() == 0);
  const Time soonest = *resigned_at_ + kTimeToTell;
  if (!handing_over_ && now < soonest) return soonest;
  const Time latest = *resigned_at_ + kTimeToFinish;
  if (!handing_over_ && !all_sent && now < latest) return latest;
  if (hand_over_tries_ == kTriesMax && now >= next_hand_over_) {
    end("it was asked to hand over, and etcd did not answer");
  }
  if (now < next_hand_over_ || !over_.empty()) return next_hand_over_;
  handing_over_ = true;
  ++hand_over_tries_;
  certain_until_ns_.store(0, std::memory_order_release);
  next_hand_over_ = now + patience_.retry_after() + options_.retry;
  // The successor is named first: whoever sees that nobody leads has seen who is to. Where nothing
  // can be put, something can still be erased.
  std::vector<etcd::Operation> then{etcd::erase(keys_.leader)};
  if (!fit_successor_.empty() && !etcd_is_full_) {
    then.insert(then.begin(), etcd::put(keys_.successor, successor_text(fit_successor_)));
  }
  client_.execute(term_->guarded(std::move(then)), patience_.deadline(),
                  [this](const Answer& answer) {
                    etcd_is_full_ = answer.status == Status::no_space;
                    if (term_->take_guarded(answer)) end("it has handed over");
                  });
  return next_hand_over_;
}

}  // namespace lockd
