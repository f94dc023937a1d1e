#include "server/worker.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "server/log.h"
#include "server/milliseconds.h"
#include "server/session/http_session.h"
#include "server/session/line_session.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

static_assert(kThreadsMax <= SignalHub::kMailboxesMax);

// As in "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> text;
  return {text.data(),
          std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

}  // namespace

Worker::Worker(ServerContext& shared, const Ports& ports)
    : server_(shared),
      stats_(shared.add_worker_stats()),
      batch_(shared.engine),
      context_{.options = shared.options,
               .hub = shared.hub,
               .engine = shared.engine,
               .batch = batch_,
               .secrets = secrets_,
               .listener = *this,
               .desk = *this,
               .stats = stats_,
               .mailbox = shared.hub.attach(*this),
               .unix_ms = unix_ms_now,
               .date = http_date(),
               .cluster = shared.cluster.get()} {
  const auto open_acceptor = [this](std::optional<Acceptor>& acceptor,
                                    const ListeningSocket& socket, Protocol protocol) {
    if (socket.descriptor < 0) return;
    acceptor.emplace(loop_, socket, stats_, [this, protocol](Connection::Socket peer) {
      admit(protocol, std::move(peer));
    });
  };
  open_acceptor(line_acceptor_, ports.line, Protocol::line);
  open_acceptor(http_acceptor_, ports.http, Protocol::http);
}

Worker::~Worker() = default;

void Worker::start() {
  if (line_acceptor_) line_acceptor_->open();
  if (http_acceptor_) http_acceptor_->open();
  thread_ = std::thread([this] { loop_.run([this] { end_turn(); }, [this] { tick(); }); });
}

void Worker::drain() {
  loop_.post([this] {
    context_.draining = true;
    if (line_acceptor_) line_acceptor_->close();
    if (http_acceptor_) http_acceptor_->close();
    for (auto& [id, connection] : connections_) connection->drain();
  });
}

// To be gone through while some of them end.
std::vector<ClientConnection*> Worker::all_connections() const {
  std::vector<ClientConnection*> all;
  for (const auto& [id, connection] : connections_) all.push_back(connection.get());
  return all;
}

void Worker::stop() {
  loop_.post([this] {
    for (ClientConnection* connection : all_connections()) connection->cut();
    end_turn();
    loop_.stop();
  });
}

// From a leader that cannot reach etcd: another may lead by now.
void Worker::send_waiting_elsewhere() {
  for (ClientConnection* connection : all_connections()) connection->send_elsewhere();
}

// Clients come and go.

void Worker::admit(Protocol protocol, Connection::Socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const auto address = unmapped(peer.address());
  if (!server_.admission.enter(address)) return stats_.connections_refused.add();
  stats_.connections_accepted.add();
  const SessionId id = ++server_.last_session;
  const bool is_line = protocol == Protocol::line;
  const bool is_foreign =
      (is_line ? options().line_is_protected() : options().http_is_protected()) &&
      !address.is_loopback();
  std::unique_ptr<ServerSession> session;
  if (is_line) {
    session = std::make_unique<LineSession>(context_, id);
  } else {
    session = std::make_unique<HttpSession>(context_, id);
  }
  auto connection = std::make_unique<ClientConnection>(
      *this, std::move(socket), server_.tls.open_channel(), address, std::move(session));
  ClientConnection& started = *connection;
  connections_.emplace(id, std::move(connection));
  round_.push_back(&started);
  if (is_foreign) {
    log_protected(protocol, address);
    started.turn_away();
  }
  started.start();
}

void Worker::log_protected(Protocol protocol, const boost::asio::ip::address& peer) {
  if (!may_log(next_protected_log_, loop_.turn_time())) return;
  log_event(LogLevel::warn,
            protocol == Protocol::line
                ? "protected mode: only loopback is served; to serve others choose --host or set "
                  "--auth-token"
                : "protected mode: only loopback is served; to serve others name a host in "
                  "--http-addr or set --auth-token",
            {{"peer", peer.to_string()}});
}

void Worker::ended(ClientConnection& connection) {
  const auto found = connections_.find(connection.id());
  round_.remove(&connection);
  if (const auto watcher = std::ranges::find(watchers_, connection.id(), &Watcher::id);
      watcher != watchers_.end()) {
    watchers_.erase(watcher);
    server_.feed.remove_watcher();
  }
  leaving_.push_back(std::move(found->second));
  connections_.erase(found);
}

// From other threads, and from this one.

void Worker::on_wait_done(const WaitResult& settled) noexcept {
  leave({.what = Delivery::wait, .id = settled.id, .settled = settled});
}

void Worker::deliver(std::span<const std::uint64_t> subscribers,
                     const std::shared_ptr<const Signal>& signal) noexcept {
  leave({.what = Delivery::signal,
         .sig = signal,
         .listeners = {subscribers.begin(), subscribers.end()}});
}

void Worker::ask(SessionId id, ReportRequest report) {
  boost::asio::post(server_.side_work, [this, id, report = std::move(report)] {
    leave({.what = Delivery::report, .id = id, .result = make_report(server_, report)});
  });
}

void Worker::watch_events(SessionId id) {
  const std::uint64_t end = server_.feed.end();
  if (watchers_.empty()) feed_place_ = end;
  watchers_.push_back({id, end});
  server_.feed.add_watcher();
}

void Worker::abandon(SessionId id, Kind kind, std::string_view key, std::string_view holder) {
  abandoned_.emplace(id, Abandoned{kind, std::string(key), std::string(holder)});
}

void Worker::leave(Delivery delivery) {
  bool knock = false;
  {
    MutexLock lock(inbox_mutex_);
    knock = inbox_.empty();
    inbox_.push_back(std::move(delivery));
  }
  // The end of the turn takes in what came, also when it was this thread that left it here.
  if (knock) loop_.post([] {});
}

// False when there was nothing.
bool Worker::take_inbox() {
  std::vector<Delivery> inbox;
  {
    MutexLock lock(inbox_mutex_);
    inbox.swap(inbox_);
  }
  for (const Delivery& delivery : inbox) {
    switch (delivery.what) {
      case Delivery::wait: settle(delivery.settled); break;
      case Delivery::report:
        if (ClientConnection* const asker = find(delivery.id)) asker->report(delivery.result);
        break;
      case Delivery::signal:
        for (const SessionId id : delivery.listeners) {
          if (ClientConnection* const listener = find(id)) listener->push(*delivery.sig);
        }
        break;
    }
  }
  return !inbox.empty();
}

// Null: it has closed meanwhile.
ClientConnection* Worker::find(SessionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Worker::settle(const WaitResult& settled) {
  ClientConnection* const waiter = find(settled.id);
  if (waiter == nullptr) return take_back(settled);
  if (settled.outcome == Outcome::ok) {
    if (waiter->turns_out_gone()) return take_back(settled);
    const Time granted = settled.grant.expires_at - settled.grant.ttl;
    stats_.hand_off.add(server_.engine.now() - granted);
  }
  waiter->on_wait_done(settled);
}

void Worker::take_back(const WaitResult& settled) {
  const auto found = abandoned_.find(settled.id);
  if (found == abandoned_.end()) return;
  if (settled.outcome == Outcome::ok) {
    const Abandoned& abandoned = found->second;
    const Holder by_secret(nullptr, settled.grant.secret);
    batch_.withdraw({.key = abandoned.key,
                     .holder = abandoned.holder.empty() ? by_secret : Holder(abandoned.holder),
                     .fence = settled.grant.fence,
                     .kind = abandoned.kind});
  }
  abandoned_.erase(found);
}

// To those who watch, what has become durable since the last tick.
void Worker::show_events() {
  if (watchers_.empty()) return;
  EventFeed::Entries entries;
  const std::uint64_t told = feed_place_;
  const std::uint64_t missed = server_.feed.read(
      feed_place_, entries, [this](Position position) { return is_durable(position); });
  const Time now = server_.engine.now();
  const std::int64_t unix_ms = unix_ms_now();
  std::uint64_t place = told + missed;
  for (const Watcher& watcher : watchers_) {
    const std::uint64_t from = std::max(told, watcher.from);
    if (from < place) connections_.at(watcher.id)->missed(place - from);
  }
  for (const auto& entry : entries) {
    const KeyEventJson shown = show(*entry, unix_ms - whole_ms(now - entry->occurrence.at));
    for (const Watcher& watcher : watchers_) {
      if (watcher.from <= place) connections_.at(watcher.id)->on_key_events(shown);
    }
    ++place;
  }
}

// Turns.

void Worker::end_turn() {
  // What is told may let a connection go on, which may settle another wait, and so on: all of it
  // belongs to this turn, and goes out with its one write per connection.
  Position position = 0;  // what this turn's answers rest on
  do {
    position = std::max(position, batch_.commit());
  } while (take_inbox());
  while (ClientConnection* connection = touched_.pop_front()) connection->flush(position);
  batch_.commit();  // a connection that broke released what it held
  release_held();
  std::erase_if(leaving_, [this](const auto& c) {
    if (!c->may_be_destroyed()) return false;
    if (c->watched.linked()) watched_.remove(c.get());
    if (c->held.linked()) held_.remove(c.get());
    server_.admission.leave(c->address());
    return true;
  });
}

// Mostly the last: but a turn that only looked on may rest on less than those before it.
void Worker::hold(ClientConnection& connection) {
  ClientConnection* successor = nullptr;
  ClientConnection* before = held_.back();
  while (before != nullptr && before->held_until() > connection.held_until()) {
    successor = before;
    before = before == held_.front() ? nullptr : before->held.prev;
  }
  successor == nullptr ? held_.push_back(&connection) : held_.insert_before(&connection, successor);
}

// What has become durable is told. Looked at again after the flag is up: progress that is made
// after that knocks.
void Worker::release_held() {
  while (!held_.empty()) {
    if (is_durable(held_.front()->held_until())) {
      held_.pop_front()->release();
    } else if (wants_durable_.exchange(true)) {
      return;
    }
  }
}

void Worker::on_durable() {
  if (wants_durable_.exchange(false)) loop_.post([] {});
}

void Worker::tick() {
  turned_.store(true, std::memory_order_relaxed);
  context_.date = http_date();
  show_events();
  if (server_.cluster != nullptr && server_.cluster->is_cut_off()) send_waiting_elsewhere();
  const auto now = std::chrono::steady_clock::now();
  ClientConnection* next = watched_.front();
  while (ClientConnection* connection = next) {
    next = watched_.next(connection);
    if (!connection->watch(now)) watched_.remove(connection);
  }
  // A part of all connections, so that each has its turn about once a second.
  constexpr std::size_t kTicksPerRound = 1s / Loop::kTick;
  for (std::size_t left = connections_.size() / kTicksPerRound + 1; left > 0; --left) {
    ClientConnection* connection = round_.pop_front();
    if (connection == nullptr) break;
    round_.push_back(connection);
    connection->check_silence(now);
  }
}

}  // namespace lockd
