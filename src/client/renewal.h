// Keeps one hold renewed, without waiting and without a thread: somebody calls advance().
//
//   waiting ──(a little before half the lease)──> asking ──ok──> waiting
//      │                                             │
//      └──────────── the connection ends ────────────┤
//                                                    v
//   reconnecting, again and again ──> asking ──ok──> waiting
//
// It ends when the server says that the token names nothing any more (`lost`), or when the hold's
// certainty ends before a renewal was confirmed (`unsure`). A server that is merely slow to answer
// is waited for: to leave the connection would be to release. One that does not even acknowledge
// what was sent is given up, and tried anew.
//
// Used by one thread at a time.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string_view>

#include "client/conversation.h"
#include "client/hold.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class Renewal {
 public:
  using Time = BootClock::time_point;

  // `conversation` is the one on which the hold was granted.
  Renewal(std::shared_ptr<Hold> hold, std::unique_ptr<Conversation> conversation);

  // When a lease that was asked for at `sent_at` is to be renewed.
  static Time due(Time sent_at, Duration lease) { return later(sent_at, lease / 16 * 7); }

  // Does what can be done now. Nothing while the hold is kept; else how it ended, and then this is
  // done with.
  std::optional<Status> advance(Time now);
  // What to wait for: the descriptor, or the deadline if that comes first.
  pollfd interest() const;
  Time deadline() const;

  const std::shared_ptr<Hold>& hold() const { return hold_; }
  // For whoever releases: null when there is no connection. A renewal may be outstanding on it.
  std::unique_ptr<Conversation> take_conversation() { return std::move(conversation_); }

 private:
  void reconnect(Time now);
  void try_again_later(Time now);
  void ask(Time now);
  std::optional<Status> judge(std::string_view reply, Time now);
  Status give_up();
  bool is_asking() const { return asked_at_.has_value(); }
  Duration patience() const;

  const std::shared_ptr<Hold> hold_;
  std::unique_ptr<Conversation> conversation_;  // null: not connected
  std::optional<Time> asked_at_;                // when the renewal was sent that has no reply yet
  Time renew_at_;
  Time retry_at_{};  // when there is no connection: when to make one
  Duration pause_{};
};

}  // namespace lockd::client
