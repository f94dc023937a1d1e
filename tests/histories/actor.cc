#include "histories/actor.h"

#include <utility>

namespace lockd::histories {
namespace {

constexpr Instant kBackOff = 20'000'000;

}  // namespace

Actor::Actor(Recording& recording, Recording::Scribe& scribe, const ChaosProxy& proxy, Role role,
             Plan plan)
    : recording_(recording),
      scribe_(scribe),
      proxy_(proxy),
      role_(std::move(role)),
      dialect_(role_.http ? http_dialect() : line_dialect()),
      plan_(std::move(plan)),
      proc_(recording.new_proc()),
      node_(proc_ % role_.subject->nodes()) {}

Via Actor::via() const {
  if (role_.http) return Via::http;
  return role_.subject->settings().tls ? Via::tls : Via::tcp;
}

void Actor::connect(const Watch& watch) {
  connect_at_ = now() + kBackOff;
  if (!role_.stays) node_ = role_.subject->leader();
  const ServerUnderTest::Place place = role_.subject->place(node_);
  const std::uint16_t server_port = role_.http ? place.http_port : place.line_port;
  if (server_port == 0) return;
  const std::uint16_t port = is_direct() ? server_port : role_.proxy_ports[node_];
  received_.clear();
  conn_ = recording_.new_conn();
  life_ = is_direct() ? place.life : 0;
  alive_at_ = now();
  server_ends_ = sent_away_ = false;
  channel_ = std::make_unique<Channel>(port, role_.subject->settings().tls);
  watch(channel_->descriptor(), *this, true, true);
  ask_next();
}

void Actor::ready(const Watch& watch, bool ending) {
  if (channel_ == nullptr || now() < paused_until_) return;
  const bool wrote = channel_->wants_to_write();
  converse(ending);
  if (channel_ != nullptr && wrote != channel_->wants_to_write()) {
    watch(channel_->descriptor(), *this, channel_->wants_to_write(), false);
  }
}

// What a reply leads to is sent at once. Its own reply is an event of its own; only an end that has
// been told of must be read now.
void Actor::converse(bool ending) {
  bool open = channel_->advance(received_, ending);
  Reply reply;
  while (pending_.has_value() && dialect_.read(pending_->request, received_, reply)) {
    take(reply);
    if (sent_away_) return close(true);
    if (!server_ends_ && !finished_) ask_next();
  }
  if (open) open = channel_->flush();
  if (!open) close(false);
}

void Actor::ask_next() {
  std::optional<Request> request = plan_.next();
  if (!request.has_value()) {
    finished_ = true;
    return;
  }
  const std::string text = dialect_.write(*request);
  Operation operation{.ttl = request->ttl,
                      .timeout = request->timeout,
                      .fence = request->fence,
                      .rid = request->rid,
                      .conn = conn_,
                      .proc = proc_,
                      .key = request->key,
                      .limit = request->limit,
                      .permits = request->permits,
                      .server = role_.subject->settings().number,
                      .node = static_cast<std::uint16_t>(node_),
                      .function = request->function,
                      .kind = request->kind,
                      .mode = request->mode,
                      .via = via()};
  operation.call = now();
  channel_->send(text);
  pending_ = {std::move(*request), operation, operation.call + operation.timeout + role_.patience};
}

void Actor::take(const Reply& reply) {
  Pending pending = std::move(*pending_);
  pending_.reset();
  if (life_ == 0) life_ = proxy_.life_of(channel_->local_port());
  Operation& operation = pending.operation;
  operation.ret = now();
  operation.life = life_;
  operation.result = reply.result;
  if (reply.fence != 0) operation.fence = reply.fence;
  for (const Operation& one : operations_of(operation, pending.request, reply)) scribe_.note(one);
  alive_at_ = operation.call;
  // A server that stops goes on serving a line by which something is held.
  server_ends_ = reply.ends && (role_.http || !plan_.has_acknowledged_hold());
  const bool is_sent_away = reply.result == Result::not_leader;
  sent_away_ = is_sent_away && !role_.stays;
  // Room, or another leader, takes a while.
  if (reply.result == Result::storage || is_sent_away) pause(operation.ret + kBackOff);
  plan_.heard(pending.request, reply);
}

void Actor::tick(Instant at, const Watch& watch) {
  if (at < paused_until_) return;
  if (paused_until_ != 0) {
    paused_until_ = 0;
    return ready(watch, true);
  }
  if (channel_ == nullptr) {
    if (!finished_ && at >= connect_at_) connect(watch);
    return;
  }
  if (pending_.has_value() && at > pending_->patience_until) close(true);
}

void Actor::die() {
  if (channel_ != nullptr) {
    channel_->reset_on_close();
    close(true);
  }
  plan_.forget();
  proc_ = recording_.new_proc();
}

void Actor::note_unknown() {
  Pending pending = std::move(*pending_);
  pending_.reset();
  Operation& operation = pending.operation;
  operation.gave_up = now();
  operation.life = life_ != 0 ? life_ : role_.subject->place(node_).life;
  operation.result = Result::info;
  const Reply none{.token = {}};
  for (const Operation& one : operations_of(operation, pending.request, none)) scribe_.note(one);
  plan_.heard(pending.request, none);
  proc_ = recording_.new_proc();
}

void Actor::close(bool by_us) {
  const Instant closing = now();
  const bool died_with_server = !by_us && is_direct() && role_.subject->is_ending(life_, node_);
  channel_.reset();
  if (pending_.has_value()) note_unknown();
  if (!role_.http) note_end(died_with_server, by_us, closing);
  plan_.disconnected();
}

// Of a connection that somebody else has ended it is only known that it lived when the last request
// was sent that was answered.
void Actor::note_end(bool died_with_server, bool by_us, Instant closing) {
  const bool known = by_us && is_direct();
  Operation end{.call = known ? closing : alive_at_,
                .ret = now(),
                .conn = conn_,
                .proc = proc_,
                .life = life_,
                .server = role_.subject->settings().number};
  end.function = died_with_server ? Function::lost : Function::disconnect;
  scribe_.note(end);
}

}  // namespace lockd::histories
