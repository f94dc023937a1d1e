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
#include "base/mutex.h"
#include "base/secret.h"
#include "client/calls.h"
#include "client/claim.h"
#include "client/cluster.h"
#include "client/hold.h"
#include "client/leader_search.h"
#include "client/line_connection.h"
#include "client/renewal.h"
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

constexpr Duration kPauseAfterCut = std::chrono::milliseconds(50);

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
  const Claim& claim = *terms.claim;
  const std::string lines = claim.renew_lines(grant);
  const std::string release = claim.release_lines(grant);
  const ConnectOptions& options = terms.cluster->options();
  const auto reply_until = later(BootClock::now(), options.reply_timeout);
  auto reply =
      ask_by_token(terms.cluster, &connection,
                   {.lines = lines, .on_cancel = release, .read_status = claim.read_status()},
                   reply_until, later(reply_until, options.connect_timeout), std::move(stop));
  if (!reply) return reply;
  const auto renewal = claim.renewal_of(reply->line, grant.lease);
  const bool is_gone = says_gone(renewal);
  const bool gives_back = is_gone ? claim.may_be_left_over() : !renewal;
  if (gives_back && connection.is_ready()) connection.ask(release);
  if (is_gone) return {Outcome::lease_expired};
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

// Of one acquisition, however often it is asked for: with the same secret that is asking once.
using Secret = std::optional<std::uint64_t>;

// None for a server that would refuse it.
Secret secret_for(const LineConnection& connection, std::uint64_t secret) {
  return connection.is_introduced() ? Secret(secret) : std::nullopt;
}

Result<std::string> lines_of(const LockRequest& request, Duration wait, Secret secret) {
  const KeyItem& item = request.keys.front();
  return acquire_lines({.key = item.key,
                        .wait = seconds_to_name(wait),
                        .lease = request.lease,
                        .kind = item.kind,
                        .limit = item.limit,
                        .mode = item.mode,
                        .permits = item.permits,
                        .secret = secret});
}

Result<std::string> lines_of(const LockRequest& request, Secret secret) {
  const KeyItem& item = request.keys.front();
  return enqueue_lines({.key = item.key,
                        .lease = request.lease,
                        .kind = item.kind,
                        .limit = item.limit,
                        .mode = item.mode,
                        .permits = item.permits,
                        .secret = secret});
}

// --- words that older servers do not know ---

bool has_new_words(const LockRequest& request) {
  const KeyItem& item = request.keys.front();
  return item.mode != Mode::exclusive || item.permits != 1;
}

Status too_old(const LockRequest& request) {
  return {Outcome::unsupported,
          std::string("the server is too old for ") +
              (request.keys.front().permits != 1 ? "several permits" : "shared locks")};
}

// A server that does not know who we are is older than any that knows these words.
Status check_server(const LockRequest& request, const LineConnection& connection) {
  if (connection.endpoint()->takes_introduction || !has_new_words(request)) return {};
  return too_old(request);
}

// One acquisition, at however many servers.
struct Acquisition {
  LockRequest request;  // what it views lives as long
  const std::uint64_t secret;
  const std::stop_token stop;
  bool has_asked = false;
  unsigned joined = 0;  // how often it has asked for a place in the queue

  bool queued_again() const { return joined > 1; }
};

// Waits, once. A server that stops ends a wait by the `error` with which an old one refuses words
// that it does not know; to a try it says why, so there the `error` can mean the words alone.
Result<LineGrant> ask_once(LineConnection& connection, Acquisition& acquisition, Duration wait) {
  const LockRequest& request = acquisition.request;
  const auto lines = lines_of(request, wait, secret_for(connection, acquisition.secret));
  acquisition.has_asked = true;
  if (wait > Duration(0)) ++acquisition.joined;
  auto grant = wait_in_queue(connection, *lines, wait, request.lease, acquisition.stop);
  if (grant.outcome != Outcome::refused) return grant;
  if (has_new_words(request) && wait == Duration(0)) return too_old(request);
  Status status = explained(grant, connection, acquisition.stop);
  const bool is_too_old = has_new_words(request) && status.outcome == Outcome::refused;
  return is_too_old ? too_old(request) : status;
}

// A wait that is shorter than the way there and back would be over before any answer: so a short
// one begins with a try. So does one with new words that was interrupted, to learn by what. A wait
// that the server has cut is asked for again.
Result<LineGrant> acquire_over(LineConnection& connection, Acquisition& acquisition,
                               Duration wait) {
  const auto until = later(BootClock::now(), wait);
  const bool learns = acquisition.has_asked && has_new_words(acquisition.request);
  Duration asked = learns || wait < std::chrono::seconds(1) ? Duration(0) : wait;
  auto grant = ask_once(connection, acquisition, asked);
  while (grant.outcome == Outcome::timeout && BootClock::now() < until) {
    if (asked > Duration(0)) {
      const auto pause = std::min(later(BootClock::now(), kPauseAfterCut), until);
      if (Status waited = pause_until(pause, acquisition.stop); !waited) return waited;
    }
    asked = std::max<Duration>(until - BootClock::now(), std::chrono::nanoseconds(1));
    grant = ask_once(connection, acquisition, asked);
  }
  return grant;
}

// Calls `ask` with a connection at whoever leads, and with what is left of the wait, which begins
// when one is there. While the server is down, stops, or does not lead any more, it is asked again,
// it or the next: until the wait is over, and in a cluster the time for one more search.
template <class Ask>
auto at_leader(const std::shared_ptr<Cluster>& cluster, Duration wait, const std::stop_token& stop,
               const Ask& ask, const std::function<void(const Status&)>& on_interrupted = {})
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

// It was there, and has not come back before the wait was over.
Result<HeldLock> stopped_if_gone(Result<HeldLock> held, bool has_asked, Duration wait) {
  const bool is_gone =
      held.outcome == Outcome::unreachable || held.outcome == Outcome::disconnected;
  if (is_gone && has_asked && wait > Duration(0)) held.outcome = Outcome::draining;
  return held;
}

Result<HeldLock> acquire_at_leader(const std::shared_ptr<Renewer>& renewer, Hold::Terms terms,
                                   Acquisition acquisition) {
  const LockRequest& request = acquisition.request;
  const auto take = [&](std::unique_ptr<LineConnection> connection,
                        Duration wait) -> Result<HeldLock> {
    if (Status unfit = check_server(request, *connection); !unfit) return unfit;
    const auto until = later(BootClock::now(), wait);
    auto grant = acquire_over(*connection, acquisition, wait);
    if (!grant) return Status(std::move(grant));
    terms.queued_again = acquisition.queued_again();
    auto taken =
        take_over(renewer, std::move(connection), terms, std::move(*grant), acquisition.stop);
    // The turn came and went. There may be time to ask again.
    const bool has_lapsed = taken.outcome == Outcome::lease_expired && wait > Duration(0);
    if (has_lapsed && BootClock::now() < until) taken.outcome = Outcome::disconnected;
    return taken;
  };
  auto held =
      at_leader(terms.cluster, request.wait, acquisition.stop, take, request.on_interrupted);
  return stopped_if_gone(std::move(held), acquisition.has_asked, request.wait);
}

// --- several keys ---

// Asks for them until it is answered, over whatever connections; and makes sure that nothing is
// left held when it never was.
class SetAcquisition {
 public:
  SetAcquisition(const LockRequest& request, const SetClaim& claim, const std::stop_token& stop)
      : request_(request), claim_(claim), stop_(stop) {}

  // For so long at most. The server may cut a wait short.
  Result<LineGrant> ask(LineConnection& connection, Duration wait) {
    if (!connection.endpoint()->takes_introduction) {
      return Status{Outcome::unsupported, "the server is too old for several keys"};
    }
    const auto until = later(BootClock::now(), wait);
    for (;;) {
      queued_again_ = std::exchange(has_asked_, true);
      auto grant = ask_once(connection, std::max(until - BootClock::now(), Duration(0)));
      if (grant.outcome != Outcome::timeout || BootClock::now() >= until) return grant;
      if (request_.on_interrupted) request_.on_interrupted(grant);
      const auto then = std::min(later(BootClock::now(), kPauseAfterCut), until);
      if (Status paused = pause_until(then, stop_); !paused) return paused;
    }
  }

  bool has_asked() const { return has_asked_; }
  bool queued_again() const { return queued_again_; }

  // Whoever asks again under the same name gets its own grant back. What it gets it releases.
  void withdraw_if_unanswered(const std::shared_ptr<Cluster>& cluster, Duration patience) const {
    if (!is_unanswered_) return;
    const auto until = later(BootClock::now(), patience);
    const auto tell = [&](const std::string& lines) {
      return ask_by_token(cluster, nullptr, {.lines = lines, .read_status = claim_.read_status()},
                          until, until, {});
    };
    const auto reply = tell(claim_.acquire_lines(Duration(0)));
    if (!reply) return;
    if (const auto grant = claim_.grant_of(reply->line)) {
      static_cast<void>(tell(claim_.release_lines(*grant)));
    }
  }

 private:
  Result<LineGrant> ask_once(LineConnection& connection, Duration wait) {
    const std::string lines = claim_.acquire_lines(wait);
    is_unanswered_ = true;
    auto reply = client::ask(connection, {.lines = lines, .wait = wait}, stop_);
    if (!reply) return Status(std::move(reply));
    is_unanswered_ = false;
    auto grant = claim_.grant_of(reply->line);
    grant->sent_at = reply->sent_at;
    return grant;
  }

  const LockRequest& request_;
  const SetClaim& claim_;
  const std::stop_token& stop_;
  bool has_asked_ = false;
  bool queued_again_ = false;
  bool is_unanswered_ = false;  // it may have been granted
};

}  // namespace

class QueuePlace::Impl {
 public:
  Impl() = default;
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<Renewer> renewer;
  Result<HeldLock> take_turn(Duration wait, const std::stop_token& stop);
  Result<HeldLock> join_again(Duration wait, std::stop_token stop);

  std::unique_ptr<LineConnection> connection;
  Hold::Terms terms;
  LockRequest request{std::string_view()};  // its key is that of the terms
  std::uint64_t secret = 0;
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

  Hold::Terms terms_of(const LockRequest& request, const std::shared_ptr<Cluster>& cluster) const {
    return {cluster, std::make_shared<KeyClaim>(request.keys.front()), request.on_lost,
            request.on_suspect};
  }

  Status check_together(const KeyItems& keys) const {
    for (const KeyItem& item : keys) {
      if (&cluster_of(item.key) == &cluster_of(keys.front().key)) continue;
      return {Outcome::invalid, std::string(keys.front().key) + " and " + std::string(item.key) +
                                    " are on different servers: keys that are taken at once must "
                                    "be on one"};
    }
    return {};
  }

  Result<HeldLock> acquire_several(const LockRequest& request, const std::stop_token& stop) const;

  std::uint64_t new_secret() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return secrets_.next();
  }

  const ClientOptions options;
  std::vector<Result<std::shared_ptr<Cluster>>> clusters;  // which share the keys
  const std::shared_ptr<Renewer> renewer;

 private:
  Mutex mutex_;
  TokenSource secrets_ GUARDED_BY(mutex_);
};

Client::Client(ClientOptions options) {
  if (options.servers.empty() && options.cluster.empty()) {
    throw std::invalid_argument("a client needs a server");
  }
  impl_ = std::make_unique<Impl>(std::move(options));
}

Client::~Client() = default;

Result<HeldLock> Client::Impl::acquire_several(const LockRequest& request,
                                               const std::stop_token& stop) const {
  const auto claim = SetClaim::make(request, options.connect);
  if (!claim) return static_cast<const Status&>(claim);
  if (Status apart = check_together(request.keys); !apart) return apart;
  const auto& cluster = cluster_of(request.keys.front().key);
  if (!cluster) return static_cast<const Status&>(cluster);
  SetAcquisition acquisition(request, **claim, stop);
  const auto take = [&](std::unique_ptr<LineConnection> connection,
                        Duration wait) -> Result<HeldLock> {
    auto grant = acquisition.ask(*connection, wait);
    if (!grant) return Status(std::move(grant));
    Hold::Terms terms{.cluster = *cluster,
                      .claim = *claim,
                      .on_lost = request.on_lost,
                      .queued_again = acquisition.queued_again()};
    return take_over(renewer, std::move(connection), std::move(terms), std::move(*grant), stop);
  };
  auto held = at_leader(*cluster, request.wait, stop, take, request.on_interrupted);
  acquisition.withdraw_if_unanswered(*cluster, options.release_timeout);
  return stopped_if_gone(std::move(held), acquisition.has_asked(), request.wait);
}

Result<HeldLock> Client::acquire(const LockRequest& request, std::stop_token stop) {
  if (request.wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  if (request.keys.size() != 1) return impl_->acquire_several(request, stop);
  if (const auto lines = lines_of(request, request.wait, {}); !lines) {
    return static_cast<const Status&>(lines);
  }
  const auto& cluster = impl_->cluster_of(request.keys.front().key);
  if (!cluster) return static_cast<const Status&>(cluster);
  return acquire_at_leader(impl_->renewer, impl_->terms_of(request, *cluster),
                           {request, impl_->new_secret(), std::move(stop)});
}

Result<QueuePlace> Client::enqueue(const LockRequest& request, std::stop_token stop) {
  if (request.keys.size() != 1) return {Outcome::invalid, "a place is in the queue of one key"};
  if (const auto lines = lines_of(request, Secret()); !lines) {
    return static_cast<const Status&>(lines);
  }
  const auto& cluster = impl_->cluster_of(request.keys.front().key);
  if (!cluster) return static_cast<const Status&>(cluster);
  const std::uint64_t secret = impl_->new_secret();
  const auto join = [&](std::unique_ptr<LineConnection> connection,
                        Duration) -> Result<QueuePlace> {
    if (Status unfit = check_server(request, *connection); !unfit) return unfit;
    const auto lines = lines_of(request, secret_for(*connection, secret));
    auto reply = ask(*connection, {.lines = *lines}, stop);
    if (!reply) return Status(std::move(reply));
    auto grant = grant_of(reply->line, request.lease);
    // Nobody is in a queue already on a connection that is new.
    if (grant.outcome == Outcome::refused && has_new_words(request)) return too_old(request);
    if (!grant && grant.outcome != Outcome::queued) return Status(std::move(grant));
    auto place = std::make_unique<QueuePlace::Impl>();
    place->renewer = impl_->renewer;
    place->connection = std::move(connection);
    place->terms = impl_->terms_of(request, *cluster);
    place->request = request;
    KeyItem item = request.keys.front();
    item.key = place->terms.claim->keys().front();
    place->request.keys = item;
    place->secret = secret;
    if (grant) {
      grant->sent_at = reply->sent_at;
      place->grant = std::move(*grant);
    }
    return QueuePlace(std::move(place));
  };
  return at_leader(*cluster, Duration(0), stop, join);
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

// --- QueuePlace ---

QueuePlace::QueuePlace() noexcept = default;
QueuePlace::QueuePlace(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
QueuePlace::~QueuePlace() = default;
QueuePlace::QueuePlace(QueuePlace&&) noexcept = default;
QueuePlace& QueuePlace::operator=(QueuePlace&&) noexcept = default;

// The end of the connection gives up a place in the queue. It releases a grant, too, unless the
// server was told not to: so a release is sent. Nobody waits for the answer.
QueuePlace::Impl::~Impl() {
  if (!grant || connection == nullptr || !connection->is_ready()) return;
  connection->ask(terms.claim->release_lines(*grant));
}

bool QueuePlace::is_granted() const noexcept {
  return impl_ != nullptr && impl_->grant.has_value();
}

Result<HeldLock> QueuePlace::wait(Duration wait, std::stop_token stop) {
  if (impl_ == nullptr) return {Outcome::not_enqueued, "the place is used up"};
  if (wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  const std::unique_ptr<Impl> place = std::move(impl_);
  const auto until = later(BootClock::now(), wait);
  auto held = place->take_turn(wait, stop);
  const Duration left = until - BootClock::now();
  // A plain `error` says that there is no such place any more, or that the server is stopping.
  const bool has_lapsed = held.outcome == Outcome::lease_expired && place->grant;
  const bool is_lost = held.outcome == Outcome::refused || held.outcome == Outcome::timeout ||
                       has_lapsed || may_pass(*place->terms.cluster, held.outcome);
  if (!is_lost || left <= Duration(0)) return held;
  if (place->request.on_interrupted) place->request.on_interrupted(held);
  return place->join_again(left, std::move(stop));
}

Result<HeldLock> QueuePlace::Impl::take_turn(Duration wait, const std::stop_token& stop) {
  if (!grant) {
    const auto lines = await_lines({.key = terms.claim->keys().front(),
                                    .wait = seconds_to_name(wait),
                                    .kind = terms.claim->kind()});
    auto granted = wait_in_queue(*connection, *lines, wait, request.lease, stop);
    if (!granted) return Status(std::move(granted));
    grant = std::move(*granted);
  }
  return take_over(renewer, std::move(connection), terms, std::move(*grant), stop);
}

// At the end of the queue, or where it was if the server still has the place.
Result<HeldLock> QueuePlace::Impl::join_again(Duration wait, std::stop_token stop) {
  connection.reset();
  request.wait = wait;
  return acquire_at_leader(renewer, terms,
                           {request, secret, std::move(stop), /*has_asked=*/true, /*joined=*/1});
}

}  // namespace lockd::client
