// Runs one history: a LockTable and the LockModel get the same calls, and after every call their
// replies, effects and states must be equal. So must the keys and counters that an EventModel
// derives from the table's key events alone. For tests.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "core/set_rules.h"
#include "core/testing/event_model.h"
#include "core/testing/lock_history.h"
#include "core/testing/lock_model.h"
#include "core/testing/table_replica.h"

namespace lockd {

class ModelCheck {
 public:
  // Writes calls and replies to `log` unless it is null.
  ModelCheck(const Setup& setup, std::ostream* log);

  // step() and finish() return the first difference, or an empty string. After a difference the
  // object must not be used.
  std::string step(const Op& op);
  std::string finish();

 private:
  struct NullListener final : Listener {
    void on_wait_done(const WaitResult&) noexcept override {}
  };
  struct Wait {
    std::uint32_t slot;
    unsigned listener;
  };

  // The calls, made on both, with their replies compared.
  std::string call(const Op& op, Time now);
  std::string acquire(const Op& op, Time now);
  std::string enqueue(const Op& op, Time now);
  std::string await_turn(const Op& op, Time now);
  std::string renew_or_end(const Op& op, Time now);
  std::string cancel(const Op& op, Time now);
  std::string query(const Op& op, Time now);
  std::string end_session(const Op& op, Time now);
  std::string advance(const Op& op, Time now);
  std::string forget(const Op& op);
  std::string end_waits();
  std::string revoke(const Op& op, Time now);
  std::string resize(const Op& op, Time now);
  std::string acquire_set(const Op& op, Time now);
  std::string renew_or_end_set(const Op& op, Time now);

  Session new_session();
  Holder holder_of(const Op& op);
  KeyUnit spare_for(const Op& op);
  LockModel::OwnedEvent choose_hold(const Op& op) const;
  std::vector<unsigned> choose_keys(const Op& op) const;
  void settle_sets();
  void log_terms(const Op& op, bool has_spare);
  void add_wait(std::uint32_t slot, unsigned listener) {
    pending_.insert(waits_.size());
    waits_.push_back({slot, listener});
  }

  // The comparisons after each call.
  std::string compare(const LockTable::Reply& reply, const LockModel::ModelReply& answer);
  std::string compare(const Conflict& actual, const std::optional<Conflict>& expected) const;
  std::string check_effects();
  std::string check_events();
  std::string check_observed() const;
  std::string check_state();
  std::string check_holds();
  std::string check_replicas();
  std::string describe_some();
  std::uint64_t digest() const;

  template <typename... Parts>
  void log(const Parts&... parts) {
    if (log_ != nullptr) (*log_ << ... << parts);
  }

  const Setup setup_;
  const TableOptions options_;
  std::ostream* const log_;
  KeyBudget budget_;
  HoldBudget holds_;
  LockTable table_;
  LockModel model_;
  Time now_;

  // Callers and the objects of their calls.
  std::array<NullListener, 2> listeners_;
  std::array<Session, kSessions> sessions_{};
  SessionId last_session_ = 0;
  std::uint64_t last_secret_ = 100;
  std::string name_;  // the storage of the current holder's name
  Time call_time_;
  std::vector<LockModel::OwnedEvent> past_grants_;
  std::vector<Wait> waits_;          // by id
  std::set<std::uint64_t> pending_;  // ids

  // Expectations besides the model.
  bool refused_ = false;  // the last call was refused
  EventModel event_model_;
  std::uint64_t renewals_ = 0;
  std::uint64_t revocations_ = 0;
  Stats::Refusals refusals_;
  const LockModel::IsLeft is_left_ = [this](const LockModel::ModelKey& key) {
    bool found = false;
    Cursor cursor;
    table_.walk(cursor, SIZE_MAX, [&](const Key& s) {
      found = found || (s.kind == key.kind && s.name() == key.name);
    });
    return found;
  };
  Fence highest_fence_;
  LockModel::Owner highest_owner_{Holder::of_secret(0)};
  std::uint64_t digest_ = 0;
  unsigned steps_ = 0;
  TableReplica standby_;                    // has applied every event
  std::unique_ptr<TableReplica> snapshot_;  // is written between the calls
};

}  // namespace lockd
