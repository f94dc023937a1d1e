// One history as it happens: a LockTable and the LockModel get the same calls, and after every call
// they must have answered the same, caused the same, and be the same. An observer, who knows of
// nothing but the key_events, must have come to believe the same, and count the same. For tests.
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

// Stops at the first complaint.
class ModelCheck {
 public:
  // Tells `log`, unless it is null, what is called and what is answered.
  ModelCheck(const Setup& setup, std::ostream* log);

  // What is wrong, or an empty string.
  std::string step(const Op& op);
  std::string finish();

 private:
  struct Deaf final : Listener {
    void on_wait_done(const WaitResult&) noexcept override {}
  };
  struct Wait {
    std::uint32_t slot;
    unsigned listener;
  };

  // The calls: on both, and what they answer.
  std::string call(const Op& op, Time now);
  std::string acquire(const Op& op, Time now);
  std::string enqueue(const Op& op, Time now);
  std::string await_turn(const Op& op, Time now);
  std::string end_or_renew(const Op& op, Time now);
  std::string cancel(const Op& op, Time now);
  std::string look(const Op& op, Time now);
  std::string end_session(const Op& op, Time now);
  std::string advance(const Op& op, Time now);
  std::string forget(const Op& op);
  std::string end_waits();
  std::string revoke(const Op& op, Time now);
  std::string resize(const Op& op, Time now);
  std::string acquire_set(const Op& op, Time now);
  std::string follow_up_set(const Op& op, Time now);

  Session new_session();
  Holder holder_of(const Op& op);
  KeyUnit spare_for(const Op& op);
  LockModel::Happened choose_hold(const Op& op) const;
  std::vector<unsigned> choose_keys(const Op& op) const;
  void settle_sets();
  void say_terms(const Op& op, bool has_spare);
  void note_wait(std::uint32_t slot, unsigned listener) {
    pending_.insert(waits_.size());
    waits_.push_back({slot, listener});
  }

  // The comparison, after each.
  std::string compare(const LockTable::Reply& reply, const LockModel::Answer& answer);
  std::string compare(const Conflict& its, const std::optional<Conflict>& mine) const;
  std::string check_effects();
  std::string check_events();
  std::string check_seen() const;
  std::string check_state();
  std::string check_holds();
  std::string check_replicas();
  std::string describe_some();
  std::uint64_t digest() const;

  template <typename... Parts>
  void say(const Parts&... parts) {
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

  // Who calls, and what about.
  std::array<Deaf, 2> listeners_;
  std::array<Session, kSessions> sessions_{};
  SessionId last_session_ = 0;
  std::uint64_t last_secret_ = 100;
  std::string name_;                       // of the holder in use
  Time called_;                            // when the call is made
  std::vector<LockModel::Happened> past_;  // grants
  std::vector<Wait> waits_;                // by id
  std::set<std::uint64_t> pending_;        // ids

  // What the table must agree with besides the model.
  bool refused_ = false;  // by the call just made
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
  Fence highest_;
  LockModel::Owner highest_of_{Holder::of_secret(0)};
  std::uint64_t digest_ = 0;
  unsigned steps_ = 0;
  TableReplica standby_;                    // has applied every event
  std::unique_ptr<TableReplica> snapshot_;  // is being described while the calls go on
};

}  // namespace lockd
