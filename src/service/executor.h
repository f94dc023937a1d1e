// Executor: executes one session's calls. It knows no protocol.
//
// A call is executed at once, or blocks the session until an event ends it: the end of its wait,
// the last piece of its report, the departure of its signal. At most one call is under way.
//
//   idle ──execute()──▶ waiting | reporting | publishing | disconnecting ──on_*()──▶ idle
//
// Rights, the rules of a draining server, leadership and the log of requests are decided here, for
// every protocol.
//
// Belongs to its session, on the thread of the session's host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "service/call.h"
#include "service/caller.h"
#include "service/reply.h"
#include "service/request_log.h"
#include "service/session_context.h"
#include "service/stateless_calls.h"

namespace lockd {

class Executor {
 public:
  Executor(SessionContext& context, SessionId id, Peer peer);

  // Preconditions: not blocked; the caller may ask for the operation.
  Reply execute(const Call& call);
  // The same for one of the types of a Call.
  template <typename OneCall>
  Reply execute_one(const OneCall& call) {
    if (log_.is_under_way()) log_.note_subject(call);
    if (caller_.permit()->is_confined()) {
      if (std::optional<Rejected> denied = caller_.check_names(call)) return *std::move(denied);
    }
    return run(call);
  }

  // Events. Each returns the reply to the call that it ends, or Blocked.
  Reply on_wait_done(const WaitResult& result);
  Reply on_report(const ReportPiece& piece);
  Reply on_published(std::size_t delivered);
  Reply on_disconnected();
  // The session needs no more pieces.
  void end_report() { state_ = State::idle; }

  bool is_blocked() const { return state_ != State::idle; }
  bool is_waiting() const { return state_ == State::waiting; }
  const PendingWait& wait() const { return wait_; }
  // Memory that a blocked call holds, in bytes.
  std::size_t buffered() const { return signal_size_; }

  // The server begins to stop: ends a wait, whose reply follows as an event.
  void cancel_wait();
  // Gives up what the session is blocked on, because the session ends. If holds outlive the
  // session, the host revokes a grant that is on its way.
  void abandon(bool keep_holds);
  // Ends what the session has, in about `budget` steps. True when nothing is left.
  bool end(bool keep_holds, int* budget);
  // Whether the session holds something that the client knows of.
  bool has_acknowledged_hold() { return context_.batch.has_acknowledged_hold(session_); }
  bool has_state() { return context_.batch.has_state(session_); }

  // The stream of events or signals that replies to a call. It ends with the session.
  bool is_streaming() const { return is_streaming_; }
  void end_stream() { is_streaming_ = false; }
  bool listens_by_stream() const { return subscribed_ == Subscribed::by_stream; }
  // Whether the client receives signals or events that it did not ask for one by one.
  bool is_pushed_to() const {
    return is_streaming_ || (subscribed_ != Subscribed::no && context_.hub.listens(subscriber()));
  }

  SessionId id() const { return session_.id; }
  // How the client named itself; null if it did not.
  const ClientRef& client() const { return session_.client; }
  SignalHub::Subscriber subscriber() const { return {context_.mailbox, session_.id}; }

  Caller& caller() { return caller_; }
  const Caller& caller() const { return caller_; }
  RequestLog& log() { return log_; }

  // Whether the leader, and not this server, executes the call: a follower replies for itself,
  // about the cluster and about its own clients. Lists and history are the leader's if it is
  // reached.
  bool is_for_leader(const Call& call) const;

 private:
  enum class State : std::uint8_t { idle, waiting, reporting, publishing, disconnecting };
  enum class Subscribed : std::uint8_t { no, by_command, by_stream };

  Reply run(const Acquire& call);
  Reply run(const Enqueue& call);
  Reply run(const AwaitTurn& call);
  Reply run(const Publish& call);
  Reply run(const Listen& call);
  Reply run(const Unlisten& call);
  Reply run(const WatchEvents& call);
  Reply run(const ReadReport& call);
  Reply run(const Disconnect& call);
  Reply run(const Identify& call);
  template <typename StatelessCall>
  Reply run(const StatelessCall& call) {
    return execute_stateless(context_, caller_, call);
  }

  Reply reply_or_wait(const Answer& answer, const KeyItems& keys, std::string_view holder);

  SessionContext& context_;
  Session session_;
  Caller caller_;
  State state_ = State::idle;
  Subscribed subscribed_ = Subscribed::no;
  bool is_streaming_ = false;
  bool explains_wait_ = false;  // a refusal describes the holds that are in the way
  PendingWait wait_;
  std::size_t signal_size_ = 0;  // of the signal that waits
  ClientStatus disconnecting_{};
  RequestLog log_;
};

}  // namespace lockd
