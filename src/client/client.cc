#include "lockd/client/client.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/crc.h"
#include "client/calls.h"
#include "client/cluster.h"
#include "client/hold.h"
#include "client/leader_search.h"
#include "client/line_connection.h"
#include "client/renewer.h"
#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {

std::size_t shard_of(std::string_view key, std::size_t servers) noexcept {
  return crc32(key) % servers;
}

namespace {

using std::chrono::seconds;

// The whole seconds to name on the wire for a wait: never less.
seconds seconds_to_name(Duration wait) {
  constexpr auto kMax = std::chrono::floor<seconds>(kDurationMax);
  return std::min(std::chrono::ceil<seconds>(std::min<Duration>(wait, kMax)), kMax);
}

// Waits in the queue by sending `lines`, which name seconds_to_name(wait). A wait that is no whole
// number of seconds is ended here, by leaving.
Result<LineGrant> wait_in_queue(LineConnection& connection, std::string_view lines, Duration wait,
                                Lease asked, std::stop_token stop) {
  const Request request{.lines = lines, .wait = wait};
  const bool whole = wait == seconds_to_name(wait);
  auto reply = whole
                   ? ask(connection, request, std::move(stop))
                   : ask_until(connection, request, later(BootClock::now(), wait), std::move(stop));
  if (reply.outcome == Outcome::no_reply && !whole) return Status{Outcome::timeout};
  if (!reply) return Status(std::move(reply));
  auto grant = grant_of(reply->line, asked);
  grant->sent_at = reply->sent_at;
  return grant;
}

// Renews a grant in place, at another server of the cluster if need be. One that is given up is
// released as well as can be without waiting: it may be in force.
Status confirm(const Hold::Terms& terms, LineConnection& connection, LineGrant& grant,
               std::stop_token stop) {
  const LineHold hold{.key = terms.key, .token = grant.token, .kind = terms.kind};
  const auto lines = renew_lines(hold, grant.lease);
  const auto release = release_lines(hold);
  const ConnectOptions& options = terms.cluster->options();
  const auto reply_until = later(BootClock::now(), options.reply_timeout);
  auto reply =
      ask_by_token(terms.cluster, &connection, {.lines = *lines, .on_cancel = *release},
                   reply_until, later(reply_until, options.connect_timeout), std::move(stop));
  if (!reply) return reply;
  const auto renewal = renewal_of(reply->line, grant.lease);
  if (renewal.outcome == Outcome::refused) return {Outcome::lease_expired};
  if (!renewal && connection.is_ready()) connection.ask(*release);
  if (!renewal) return renewal;
  grant.sent_at = reply->sent_at;
  grant.lease = renewal->remaining;
  return {};
}

// Whether the server has taken back, unasked, what nobody watches yet.
std::optional<Status> loss_of(const LineGrant& grant, LineConnection& connection) {
  connection.advance(BootClock::now());
  const auto loss = connection.take_loss_of(grant.token);
  if (!loss) return {};
  return loss->cause == Loss::Cause::expired ? Status{Outcome::lease_expired} : status_of(*loss);
}

// Hands a grant to the renewer. One that is due for renewal already is renewed first, so that
// nobody is given what ran out while the reply was under way or this process was stopped:
// `lease_expired`. Nor is anybody given what the server has taken back: `lost`.
Result<HeldLock> take_over(const std::shared_ptr<Renewer>& renewer,
                           std::unique_ptr<LineConnection> connection, Hold::Terms terms,
                           LineGrant grant, std::stop_token stop) {
  const bool is_due = BootClock::now() >= Renewal::due(grant.sent_at, grant.lease);
  Status status = is_due ? confirm(terms, *connection, grant, std::move(stop)) : Status{};
  if (auto loss = loss_of(grant, *connection)) return std::move(*loss);
  if (!status) return status;
  auto hold = std::make_shared<Hold>(std::move(terms), std::move(grant));
  return Renewer::keep(renewer, std::move(hold), std::move(connection));
}

// Whether it is worth asking for the same again, there or at another server of the cluster: nothing
// was done, or it is a grant that nobody has heard of, and that its lease ends.
bool may_pass(const Cluster& cluster, Outcome outcome) {
  return outcome == Outcome::draining || outcome == Outcome::disconnected ||
         outcome == Outcome::unreachable || (outcome == Outcome::not_leader && !cluster.is_alone());
}

// What a refusal to take was. A server that is asked to stop ends the waits at it by a plain
// `error`, and says why to whoever asks next, or is gone by then.
Status explained(const Status& refusal, LineConnection& connection, std::stop_token stop) {
  const auto reply = ask(connection, {.lines = kBarrierLines}, std::move(stop));
  Status status = reply ? status_of(reply->line) : static_cast<const Status&>(reply);
  return moves_on(status.outcome) ? status : refusal;
}

Result<std::string> lines_of(const LockRequest& request, Duration wait) {
  return acquire_lines({.key = request.key,
                        .wait = seconds_to_name(wait),
                        .lease = request.lease,
                        .kind = request.kind,
                        .limit = request.limit,
                        .mode = request.mode,
                        .permits = request.permits});
}

// --- words that older servers do not know ---

bool has_new_words(const LockRequest& request) {
  return request.mode != Mode::exclusive || request.permits != 1;
}

Status too_old(const LockRequest& request) {
  return {Outcome::unsupported, std::string("the server is too old for ") +
                                    (request.permits != 1 ? "several permits" : "shared locks")};
}

// A server that does not know who we are is older than any that knows these words.
Status check_server(const LockRequest& request, const LineConnection& connection) {
  if (connection.endpoint()->takes_introduction || !has_new_words(request)) return {};
  return too_old(request);
}

// Waits, once. A server that stops ends a wait by the `error` with which an old one refuses words
// that it does not know; to a try it says why, so there the `error` can mean the words alone.
Result<LineGrant> ask_once(LineConnection& connection, const LockRequest& request, Duration wait,
                           const std::stop_token& stop) {
  auto grant = wait_in_queue(connection, *lines_of(request, wait), wait, request.lease, stop);
  if (grant.outcome != Outcome::refused) return grant;
  if (has_new_words(request) && wait == Duration(0)) return too_old(request);
  Status status = explained(grant, connection, stop);
  const bool is_too_old = has_new_words(request) && status.outcome == Outcome::refused;
  return is_too_old ? too_old(request) : status;
}

// A wait that is shorter than the way there and back would be over before any answer: so a short
// one begins with a try. So does one with new words that was interrupted, to learn by what.
Result<LineGrant> acquire_over(LineConnection& connection, const LockRequest& request,
                               Duration wait, bool asks_again, const std::stop_token& stop) {
  const bool learns = asks_again && has_new_words(request);
  const bool is_short = wait < std::chrono::seconds(1) && wait != Duration(0);
  if (!learns && !is_short) return ask_once(connection, request, wait, stop);
  const auto until = later(BootClock::now(), wait);
  auto tried = ask_once(connection, request, Duration(0), stop);
  const Duration left = until - BootClock::now();
  const bool goes_on = tried.outcome == Outcome::timeout && left > Duration(0);
  return goes_on ? ask_once(connection, request, left, stop) : tried;
}

}  // namespace

class Place::Impl {
 public:
  Impl() = default;
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<Renewer> renewer;
  std::unique_ptr<LineConnection> connection;
  Hold::Terms terms;
  Lease lease;                     // as asked for
  std::optional<LineGrant> grant;  // when it was granted at once
};

class Client::Impl {
 public:
  explicit Impl(ClientOptions given)
      : options(std::move(given)),
        renewer(Renewer::start(std::max(options.release_timeout, Duration(0)))) {
    if (!options.cluster.empty()) {
      clusters.push_back(Cluster::make(options.cluster, options.connect));
      return;
    }
    for (const Address& server : options.servers) {
      clusters.push_back(Cluster::make({&server, 1}, options.connect));
    }
  }

  const Result<std::shared_ptr<Cluster>>& cluster_of(std::string_view key) const {
    return clusters[shard_of(key, clusters.size())];
  }

  // Calls `ask` with a connection at whoever leads, and with what is left of the wait, which begins
  // when one is there. While the server is down, stops, or does not lead any more, it is asked
  // again, it or the next: until the wait is over, and in a cluster the time for one more search.
  template <class Ask>
  auto at_leader(const std::shared_ptr<Cluster>& cluster, Duration wait,
                 const std::stop_token& stop, const Ask& ask,
                 const std::function<void(const Status&)>& on_interrupted = {}) const
      -> decltype(ask(nullptr, wait)) {
    LeaderSearch search(cluster);
    const auto patience = cluster->is_alone() ? Duration(0) : cluster->options().connect_timeout;
    std::optional<BootClock::time_point> began;
    const auto start = BootClock::now();
    for (;;) {
      auto connection = open_at_leader(search, stop);
      const auto asked_at = BootClock::now();
      if (!began) began = connection ? asked_at : start;
      const Duration left = std::max(wait - (asked_at - *began), Duration(0));
      auto answer = connection ? ask(std::move(*connection), left)
                               : decltype(ask(nullptr, wait))(Status(std::move(connection)));
      const auto deadline = later(later(*began, wait), patience);
      if (!may_pass(*cluster, answer.outcome) || BootClock::now() >= deadline) return answer;
      if (on_interrupted) on_interrupted(answer);
      search.move_on(answer, BootClock::now());
      Status paused = pause_until(std::min(search.not_before(), deadline), stop);
      if (!paused) return paused;
    }
  }

  Hold::Terms terms_of(const LockRequest& request, const std::shared_ptr<Cluster>& cluster) const {
    return {cluster, std::string(request.key), request.kind, request.on_lost};
  }

  const ClientOptions options;
  std::vector<Result<std::shared_ptr<Cluster>>> clusters;  // which share the keys
  const std::shared_ptr<Renewer> renewer;
};

Client::Client(ClientOptions options) {
  if (options.servers.empty() && options.cluster.empty()) {
    throw std::invalid_argument("a client needs a server");
  }
  impl_ = std::make_unique<Impl>(std::move(options));
}

Client::~Client() = default;

Result<HeldLock> Client::acquire(const LockRequest& request, std::stop_token stop) {
  if (request.wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  if (const auto lines = lines_of(request, request.wait); !lines) {
    return static_cast<const Status&>(lines);
  }
  const auto& cluster = impl_->cluster_of(request.key);
  if (!cluster) return static_cast<const Status&>(cluster);
  Hold::Terms terms = impl_->terms_of(request, *cluster);
  bool has_asked = false;
  const auto take = [&](std::unique_ptr<LineConnection> connection,
                        Duration wait) -> Result<HeldLock> {
    if (Status unfit = check_server(request, *connection); !unfit) return unfit;
    terms.queued_again = std::exchange(has_asked, true);
    auto grant = acquire_over(*connection, request, wait, terms.queued_again, stop);
    if (!grant) return Status(std::move(grant));
    return take_over(impl_->renewer, std::move(connection), terms, std::move(*grant), stop);
  };
  auto held = impl_->at_leader(*cluster, request.wait, stop, take, request.on_interrupted);
  // It was there, and has not come back in time.
  const bool is_gone =
      held.outcome == Outcome::unreachable || held.outcome == Outcome::disconnected;
  if (is_gone && has_asked && request.wait > Duration(0)) held.outcome = Outcome::draining;
  return held;
}

Result<Place> Client::enqueue(const LockRequest& request, std::stop_token stop) {
  const auto lines = enqueue_lines({.key = request.key,
                                    .lease = request.lease,
                                    .kind = request.kind,
                                    .limit = request.limit,
                                    .mode = request.mode,
                                    .permits = request.permits});
  if (!lines) return static_cast<const Status&>(lines);
  const auto& cluster = impl_->cluster_of(request.key);
  if (!cluster) return static_cast<const Status&>(cluster);
  const auto join = [&](std::unique_ptr<LineConnection> connection, Duration) -> Result<Place> {
    if (Status unfit = check_server(request, *connection); !unfit) return unfit;
    auto reply = ask(*connection, {.lines = *lines}, stop);
    if (!reply) return Status(std::move(reply));
    auto grant = grant_of(reply->line, request.lease);
    // Nobody is in a queue already on a connection that is new.
    if (grant.outcome == Outcome::refused && has_new_words(request)) return too_old(request);
    if (!grant && grant.outcome != Outcome::queued) return Status(std::move(grant));
    auto place = std::make_unique<Place::Impl>();
    place->renewer = impl_->renewer;
    place->connection = std::move(connection);
    place->terms = impl_->terms_of(request, *cluster);
    place->lease = request.lease;
    if (grant) {
      grant->sent_at = reply->sent_at;
      place->grant = std::move(*grant);
    }
    return Place(std::move(place));
  };
  return impl_->at_leader(*cluster, Duration(0), stop, join);
}

const Address& Client::server_of(std::string_view key) const noexcept {
  const auto& cluster = impl_->cluster_of(key);
  if (cluster) return (*cluster)->member((*cluster)->leader())->address;
  const auto& servers = impl_->options.servers;
  return impl_->options.cluster.empty() ? servers[shard_of(key, servers.size())]
                                        : impl_->options.cluster.front();
}

Result<Connection> Client::connect(std::string_view key, std::stop_token stop) {
  const auto& cluster = impl_->cluster_of(key);
  if (!cluster) return static_cast<const Status&>(cluster);
  LeaderSearch search(*cluster);
  auto connection = open_at_leader(search, std::move(stop));
  if (!connection) return Status(std::move(connection));
  return Connection(std::make_unique<Connection::Impl>(std::move(*connection)));
}

// --- Place ---

Place::Place() noexcept = default;
Place::Place(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Place::~Place() = default;
Place::Place(Place&&) noexcept = default;
Place& Place::operator=(Place&&) noexcept = default;

// The end of the connection gives up a place in the queue. It releases a grant, too, unless the
// server was told not to: so a release is sent. Nobody waits for the answer.
Place::Impl::~Impl() {
  if (!grant || connection == nullptr || !connection->is_ready()) return;
  const auto lines = release_lines({.key = terms.key, .token = grant->token, .kind = terms.kind});
  if (lines) connection->ask(*lines);
}

bool Place::is_granted() const noexcept { return impl_ != nullptr && impl_->grant.has_value(); }

Result<HeldLock> Place::wait(Duration wait, std::stop_token stop) {
  if (impl_ == nullptr) return {Outcome::not_enqueued, "the place is used up"};
  if (wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  const std::unique_ptr<Impl> place = std::move(impl_);
  if (!place->grant) {
    const auto lines = await_lines(
        {.key = place->terms.key, .wait = seconds_to_name(wait), .kind = place->terms.kind});
    auto grant = wait_in_queue(*place->connection, *lines, wait, place->lease, stop);
    if (!grant) return Status(std::move(grant));
    place->grant = std::move(*grant);
  }
  return take_over(place->renewer, std::move(place->connection), std::move(place->terms),
                   std::move(*place->grant), std::move(stop));
}

}  // namespace lockd::client
