// Keeps one hold renewed, without waiting and without a thread: somebody calls advance().
//
//   at home ──(at a third of the lease)──> asking ──ok──> at home
//                                                   │
//        the connection ends, or, in a cluster,     │
//        the server does not lead or is overdue     v
//                               away: the next server, again and again ──ok──> home is there
//
// Home is the connection on which it was granted; once that is gone, the one on which it was
// renewed. To leave home would be to release, so a server that is merely slow to answer is waited
// for, and one that does not even acknowledge what was sent is given up. In a cluster a leader may
// hang and another take over: when its answer is overdue the client asks the others as well, and
// home is kept open, in case it answers after all.
//
// A server of a cluster that replies that it does not lead is left, and home is gone with it. Once
// home is gone, a server may have released the hold: it is suspect from the first reconnection that
// does not renew it, also one that reaches only followers, until one does. It is lost
// (`unauthorized`) when a server refuses this client.
//
// It ends when a server that leads says that the token names nothing any more, or a server,
// unasked, that it has ended the hold (`lost`); or when the hold's certainty ends before a renewal
// was confirmed (`unsure`).
//
// Used by one thread at a time.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "client/hold.h"
#include "client/leader_search.h"
#include "client/line_connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// Whether the answer to a renewal, or to a release, says that the token names nothing any more. An
// error that only a later server knows, which has a detail, does not.
inline bool says_gone(const Status& status) {
  return (status.outcome == Outcome::refused && status.detail.empty()) ||
         status.outcome == Outcome::lease_expired || status.outcome == Outcome::not_enqueued;
}

class Renewal {
 public:
  using Time = BootClock::time_point;

  // `connection` is the one on which the hold was granted.
  Renewal(std::shared_ptr<Hold> hold, std::unique_ptr<LineConnection> connection);

  // When a lease that was asked for at `sent_at` is to be renewed.
  static Time due(Time sent_at, Duration lease) { return later(sent_at, lease / 3); }

  // Does what can be done now. Nothing while the hold is kept; else how it ended, and then this is
  // done with.
  std::optional<Status> advance(Time now);
  // What to wait for: a descriptor (those that are negative aside), or the deadline if that comes
  // first.
  std::array<pollfd, 2> interests() const;
  Time deadline() const;

  const std::shared_ptr<Hold>& hold() const { return hold_; }
  // True once for each time that the lock becomes suspect.
  bool take_suspicion() { return std::exchange(is_newly_suspect_, false); }
  // For whoever releases: null when there is no connection. A renewal may be outstanding on it.
  std::unique_ptr<LineConnection> take_connection();

 private:
  // One server that is asked.
  struct Talk {
    std::unique_ptr<LineConnection> connection{};  // null: none
    std::size_t member = 0;                        // of the cluster
    std::optional<Time> asked_at{};  // when the renewal was sent that has no reply yet
    bool is_proven = false;          // the hold was granted or renewed on it
  };

  Talk& current() { return is_away_ ? visit_ : home_; }
  std::optional<Status> hear(Talk& talk, Time now);
  std::optional<Status> judge(Talk& talk, std::string_view reply, Time now);
  void leave(Talk& talk, Time now);
  void settle();
  void go_away(const Status& why, Time now);
  // Goes away from a try that did not renew.
  void fail(const Status& why, Time now);
  void doubt(const Status& why);
  void visit(Time now);
  void ask(Talk& talk, Time now);
  Status give_up();
  void give_back(const Talk& talk) const;
  Time deadline_of(const Talk& talk) const;
  // When others are asked as well.
  Time overdue_at(const Talk& talk) const;
  Duration patience() const;
  Cluster& cluster() const { return search_.cluster(); }

  const std::shared_ptr<Hold> hold_;
  LeaderSearch search_;
  Talk home_;
  Talk visit_;
  bool is_away_ = false;  // the visit counts, or is to be made: home is gone or overdue
  Time renew_at_;
  Time confirmed_at_{};  // when that was asked which was last confirmed
  Duration pause_{};
  bool is_newly_suspect_ = false;
  bool is_refused_ = false;
};

}  // namespace lockd::client
