// ServerSession: one client's session, whatever its protocol, without its socket.
//
// A session is a codec and an Executor. Bytes and events go in; replies and pushes are appended to
// an output. Requests are executed strictly in order: while one blocks, nothing behind it starts.
//
// Used by the thread of its SessionHost only. A session has no clock and no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/line/line_request.h"
#include "server/session/session_event.h"
#include "service/executor.h"

namespace lockd {

class ServerSession {
 public:
  enum class CloseState : std::uint8_t {
    open,
    closing,
    rejected,  // what the client sends is dropped, and after a pause the session closes
  };
  // Why the reply to a client is delayed, until PauseOver.
  enum class Pause : std::uint8_t {
    none,
    rejected,        // the client is not served, whatever it sends
    failed_attempt,  // a wrong auth token, or none: longer for an address that failed often
  };

  virtual ~ServerSession() = default;
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  virtual Protocol protocol() const = 0;
  // Executes the complete requests in `unread`, until one blocks, the session closes, or enough was
  // done for one turn. Returns the number of bytes that it consumed.
  virtual std::size_t on_bytes(std::string_view unread, std::string& out) = 0;
  // False: the client cannot take more pushes, and its session must be closed.
  virtual bool on_event(const SessionEvent& event, std::string& out) = 0;
  // The session is over. With `keep_holds` its holds live until their leases end. Takes about
  // `budget` steps and subtracts them; true when nothing is left. No other call follows it.
  virtual bool on_end(bool keep_holds, int* budget) { return executor_.end(keep_holds, budget); }

  // Nothing is consumed: a request blocks.
  virtual bool is_blocked() const { return executor_.is_blocked(); }
  // The session works for a client that must be there: it waits in a queue, or streams.
  virtual bool needs_peer() const { return executor_.is_waiting(); }
  // Memory for what has arrived and for what is to be sent, in bytes.
  virtual std::size_t buffered() const { return executor_.buffered(); }
  // While the server stops: nothing keeps the session open.
  virtual bool can_close() { return false; }
  // The session serves clients of another server, which are sessions of this host.
  virtual bool carries_others() const { return false; }

  // Another session takes the place of this one; null: none does. The successor receives the
  // predecessor, and the input that it left unread.
  std::unique_ptr<ServerSession> take_successor() { return std::move(successor_); }
  virtual void succeed(std::unique_ptr<ServerSession> /*predecessor*/) {}
  // When the client last waited for a leader in vain; zero: never.
  Time found_no_leader() const { return found_no_leader_; }
  void note_no_leader(Time at) { found_no_leader_ = at; }
  // The session wants to know how much of its output the peer has taken.
  bool follows_output() const { return follows_output_; }

  // A grant to the session's wait would outlive the session, so it must not be made for a client
  // that has left.
  bool grant_outlives_session() const {
    return executor_.is_waiting() &&
           (!executor_.wait().holder.empty() || !context_.options.auto_release_on_disconnect);
  }
  // Silence is no reason to close the session.
  bool may_be_silent() {
    return is_exempt_from_timeouts_ || is_blocked() || executor_.is_pushed_to() ||
           executor_.has_state();
  }
  // See Caller::renew_permit().
  bool renew_permit() { return executor_.caller().renew_permit(executor_.is_pushed_to()); }
  // The number of the request that has begun and is incomplete; 0: there is none.
  std::uint64_t request_under_way() const { return request_under_way_; }
  bool is_authenticated() const { return is_authenticated_; }
  CloseState close_state() const { return close_state_; }
  bool is_open() const { return close_state_ == CloseState::open; }
  Pause pause() const { return pause_; }
  // The rule that the client broke last.
  Violation violation() const { return violation_; }

  Executor& executor() { return executor_; }
  const Executor& executor() const { return executor_; }
  SessionId id() const { return executor_.id(); }

 protected:
  ServerSession(SessionContext& context, SessionId id, Peer peer)
      : context_(context),
        executor_(context, id, std::move(peer)),
        is_authenticated_(executor_.caller().peer().is_forwarded() ||
                          !context.access.asks_for_token()) {}

  void note(Violation violation) {
    violation_ = violation;
    if (violation == Violation::none) return;
    context_.stats.violations[static_cast<std::size_t>(violation)].add();
  }
  // Whether a turn that has consumed `taken` bytes may continue. While the journal is behind, a
  // turn executes one request.
  bool can_take_more(std::size_t taken) const {
    return is_open() && !is_blocked() && (taken == 0 || !context_.engine.journal_is_behind());
  }
  void close() { close_state_ = CloseState::closing; }
  void reject(Pause pause) {
    close_state_ = CloseState::rejected;
    pause_ = pause;
  }
  Access::Time wall_time() const {
    return Access::Time(std::chrono::milliseconds(context_.unix_ms()));
  }

  SessionContext& context_;
  Executor executor_;
  bool is_authenticated_;
  std::uint64_t request_under_way_ = 0;
  CloseState close_state_ = CloseState::open;
  Pause pause_ = Pause::none;
  Violation violation_ = Violation::none;
  bool follows_output_ = false;
  bool is_exempt_from_timeouts_ = false;
  std::unique_ptr<ServerSession> successor_;
  Time found_no_leader_{};
};

}  // namespace lockd
