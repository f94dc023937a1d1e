#include "service/executor.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"
#include "service/refusals.h"
#include "service/stateless_calls.h"

namespace lockd {
namespace {

Holder holder_of(const Owner& owner, Session& session, TokenSource& secrets) {
  if (!owner.name.empty()) return owner.name;
  if (owner.secret.has_value()) return Holder(&session, *owner.secret).chosen();
  return {&session, secrets.next()};
}

}  // namespace

Executor::Executor(SessionContext& context, SessionId id, Peer peer)
    : context_(context),
      session_{.id = id, .client = peer.client},
      caller_(context, id, std::move(peer)),
      log_(context.engine, id) {}

// Executing.

Reply Executor::execute(const Call& call) {
  return std::visit([this](const auto& one) { return execute_one(one); }, call);
}

bool Executor::is_for_leader(const Call& call) const {
  if (caller_.peer().is_forwarded() || !context_.gate.follows()) return false;
  return std::visit(
      Overloaded{
          [](const Ping&) { return false; },
          [](const Identify&) { return false; },
          [](const DescribeCaller&) { return false; },
          [](const CheckHealth&) { return false; },
          [](const InspectCluster&) { return false; },
          [&](const ReadReport& c) { return !c.local && context_.gate.reaches_leader(); },
          [&](const Disconnect& c) { return !context_.clients.status(c.client); },
          [](const auto&) { return true; },
      },
      call);
}

Reply Executor::run(const Acquire& call) {
  explains_wait_ = call.explain;
  std::vector<Conflict> conflicts;
  const bool is_named = !call.owner.name.empty();
  const Answer answer = context_.batch.acquire(
      {.keys = call.keys,
       .holder = holder_of(call.owner, session_, context_.secrets),
       .ttl = call.ttl,
       .wait = call.wait,
       .note = call.note,
       .peer = is_named ? std::string_view(caller_.peer().address) : std::string_view()},
      &context_.services.wait_listener(), session_.id, call.explain ? &conflicts : nullptr);
  if (answer.outcome == Outcome::ok || answer.outcome == Outcome::queued) {
    return reply_or_wait(answer, call.keys, call.owner.name);
  }
  return refuse_acquire(context_, caller_, answer.outcome, call.keys, std::move(conflicts));
}

Reply Executor::run(const Enqueue& call) {
  const Answer answer =
      context_.batch.enqueue({.keys = call.key,
                              .holder = holder_of(call.owner, session_, context_.secrets),
                              .ttl = call.ttl});
  if (answer.outcome == Outcome::queued) return Queued{};
  return reply_or_wait(answer, call.key, {});
}

Reply Executor::run(const AwaitTurn& call) {
  explains_wait_ = false;
  const Answer answer = context_.batch.await_turn(session_, call.kind, call.key, call.wait,
                                                  &context_.services.wait_listener(), session_.id);
  return reply_or_wait(answer, KeyItem(call.key, call.kind), {});
}

Reply Executor::reply_or_wait(const Answer& answer, const KeyItems& keys, std::string_view holder) {
  if (answer.outcome == Outcome::ok) {
    log_.note(answer.grant.fence);
    return Granted{answer.grant};
  }
  if (answer.outcome != Outcome::queued) return refuse(context_, answer.outcome);
  state_ = State::waiting;
  wait_ = PendingWait::of(answer.wait, keys, holder);
  return Blocked{};
}

Reply Executor::on_wait_done(const WaitResult& result) {
  if (state_ != State::waiting) return Blocked{};
  state_ = State::idle;
  if (result.outcome == Outcome::ok) {
    log_.note(result.grant.fence);
    return Granted{result.grant};
  }
  const KeyItems keys = wait_.keys();
  std::vector<Conflict> conflicts;
  if (explains_wait_ && depends_on_holder(result.outcome)) {
    conflicts = context_.batch.explain(
        {.keys = keys, .holder = wait_.holder, .ttl = context_.options.default_lease_ttl});
  }
  return refuse_acquire(context_, caller_, result.outcome, keys, std::move(conflicts));
}

Reply Executor::run(const Identify& call) {
  ClientIdentity identity{.name = std::string(call.name),
                          .peer = caller_.peer().address,
                          .note = std::string(call.note)};
  if (session_.client == nullptr || *session_.client != identity) {
    session_.client = std::make_shared<const ClientIdentity>(std::move(identity));
    context_.clients.name(id(), session_.client);
  }
  return Done{};
}

// Signals and events.

Reply Executor::run(const Publish& call) {
  const auto delivered = context_.services.publish(id(), call.channel, call.payload);
  if (delivered) return SignalSent{*delivered};
  signal_size_ = call.channel.size() + call.payload.size();
  state_ = State::publishing;
  return Blocked{};
}

Reply Executor::on_published(std::size_t delivered) {
  if (state_ != State::publishing) return Blocked{};
  signal_size_ = 0;
  state_ = State::idle;
  return SignalSent{delivered};
}

// A client could not distinguish signals of a stream from those of the line command `listen`, so a
// connection has one or the other.
Reply Executor::run(const Listen& call) {
  const Subscribed how = call.as_stream ? Subscribed::by_stream : Subscribed::by_command;
  if (call.as_stream && subscribed_ == Subscribed::by_command)
    return reject(Rejected::Reason::already_listening);
  if (is_streaming_ && (call.as_stream || subscribed_ == Subscribed::by_stream)) {
    return reject(Rejected::Reason::already_streaming);
  }
  if (!context_.hub.listen(subscriber(), call.pattern, call.group)) {
    return reject(Rejected::Reason::too_many_subscriptions);
  }
  subscribed_ = how;
  is_streaming_ = is_streaming_ || call.as_stream;
  return call.as_stream ? Reply(StreamBegun{}) : Reply(Done{});
}

Reply Executor::run(const Unlisten& call) {
  context_.hub.unlisten(subscriber(), call.pattern, call.group);
  return Done{};
}

Reply Executor::run(const WatchEvents& call) {
  if (is_streaming_) return reject(Rejected::Reason::already_streaming);
  if (!context_.services.watch_events(id(), call.prefix, caller_.restriction())) {
    return reject(Rejected::Reason::too_many_watchers);
  }
  is_streaming_ = true;
  return StreamBegun{};
}

// Reports.

Reply Executor::run(const ReadReport& call) {
  using What = ReportRequest::What;
  if (call.report->what == What::history && context_.options.history == 0) {
    return reject(Rejected::Reason::no_history);
  }
  if (call.report->what == What::metrics && !context_.options.metrics) {
    return reject(Rejected::Reason::no_metrics);
  }
  if (call.certain) {
    const Reply leads = execute_stateless(context_, caller_, ConfirmLeadership{});
    if (std::holds_alternative<Refused>(leads)) return leads;
  }
  state_ = State::reporting;
  ReportRequest report = *call.report;
  report.confined_to = caller_.restriction();
  context_.services.request_report(id(), std::move(report));
  return Blocked{};
}

Reply Executor::on_report(const ReportPiece& piece) {
  if (state_ != State::reporting) return Blocked{};
  if (piece.was_refused || piece.rest == nullptr) state_ = State::idle;
  if (piece.was_refused) return reject(Rejected::Reason::too_many_reports);
  return ReportPart{&piece};
}

// The thread of the client's own host ends it.
Reply Executor::run(const Disconnect& call) {
  std::optional<ClientStatus> client = context_.clients.status(call.client);
  if (!client || !context_.services.disconnect(id(), call.client)) {
    return reject(Rejected::Reason::no_such_client);
  }
  record_disconnect(context_, *client, call.reason, caller_.admin_name());
  disconnecting_ = *std::move(client);
  state_ = State::disconnecting;
  return Blocked{};
}

Reply Executor::on_disconnected() {
  if (state_ != State::disconnecting) return Blocked{};
  state_ = State::idle;
  return Disconnected{&disconnecting_};
}

// Ends.

void Executor::cancel_wait() {
  if (state_ == State::waiting) context_.batch.cancel(wait_.id);
}

// The place of a named wait does not end with the session. The place of a secret does; if it has
// been granted and holds are kept, the grant must not be.
void Executor::abandon(bool keep_holds) {
  if (std::exchange(state_, State::idle) != State::waiting) return;
  const bool is_named = !wait_.holder.empty();
  const bool may_be_granted = is_named ? !context_.batch.cancel(wait_.id) : keep_holds;
  if (may_be_granted) context_.services.orphan_wait(id(), std::move(wait_));
}

bool Executor::end(bool keep_holds, int* budget) {
  abandon(keep_holds);
  log_.end("disconnected");
  return context_.batch.end_session(session_, keep_holds, budget) &&
         (subscribed_ == Subscribed::no || context_.hub.drop_some(subscriber(), budget));
}

}  // namespace lockd
