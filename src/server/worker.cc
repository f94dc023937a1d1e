#include "server/worker.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/log.h"
#include "server/stats.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAcceptPause = 100ms;
// Not all: the other loops are at the door too.
constexpr int kAcceptsAtOnce = 16;
constexpr auto kRepeatedLogInterval = 60s;

// A descriptor that needs nothing but itself; -1 when there is none left.
int open_reserve() { return ::eventfd(0, EFD_CLOEXEC); }

// Once a minute at most: what any peer can cause must not fill the log.
bool may_log(Connection::Clock::time_point& next, Connection::Clock::time_point now) {
  if (now < next) return false;
  next = now + kRepeatedLogInterval;
  return true;
}

}  // namespace

Worker::Worker(Shared& shared, int listening, bool ipv6)
    : shared_(shared),
      acceptor_(loop_.context()),
      accept_pause_(loop_.context()),
      reserve_(open_reserve()),
      batch_(shared.engine),
      service_{shared.options, shared.hub, batch_, secrets_, *this, shared.hub.attach(*this)} {
  acceptor_.assign(ipv6 ? tcp::v6() : tcp::v4(), ::fcntl(listening, F_DUPFD_CLOEXEC, 0));
  acceptor_.non_blocking(true);
}

Worker::~Worker() {
  if (reserve_ >= 0) ::close(reserve_);
}

void Worker::start() {
  accept();
  thread_ = std::thread([this] { loop_.run([this] { end_turn(); }, [this] { tick(); }); });
}

void Worker::drain() {
  loop_.post([this] {
    service_.draining = true;
    error_code ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
    for (auto& [id, connection] : connections_) connection->drain();
  });
}

void Worker::stop() {
  loop_.post([this] {
    std::vector<LineConnection*> all;
    for (auto& [id, connection] : connections_) all.push_back(connection.get());
    for (LineConnection* connection : all) connection->cut();
    end_turn();
    loop_.stop();
  });
}

// Accepting.

void Worker::accept() {
  acceptor_.async_accept(loop_.context().get_executor(),
                         [this](const error_code& error, Connection::Socket socket) {
                           on_accept(error, std::move(socket));
                         });
}

void Worker::on_accept(const error_code& error, Connection::Socket socket) {
  if (!acceptor_.is_open()) return;
  if (!error) {
    take(std::move(socket));
    take_more();
    return accept();
  }
  if (error == boost::asio::error::connection_aborted) return accept();
  if (error == boost::asio::error::no_descriptors || error.value() == ENFILE) refuse_politely();
  // Out of descriptors or memory: to try again at once would only spin.
  accept_pause_.expires_after(kAcceptPause);
  accept_pause_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) accept();
  });
}

// Who else stands at the door. One at a time they would wait for as many turns of a busy loop.
void Worker::take_more() {
  for (int more = 1; more < kAcceptsAtOnce; ++more) {
    Connection::Socket socket(loop_.context());
    error_code nobody;  // a real error comes again with the next accept
    acceptor_.accept(socket, nobody);
    if (nobody) return;
    take(std::move(socket));
  }
}

void Worker::take(Connection::Socket socket) {
  // The reserve comes first: while it was given up, another loop may have taken its descriptor.
  if (reserve_ < 0) reserve_ = open_reserve();
  if (reserve_ >= 0) {
    admit(std::move(socket));
  } else {
    give_up(std::move(socket));
  }
}

// No descriptor is left: the reserve takes the connection in, so that its peer sees a close and not
// a silence.
void Worker::refuse_politely() {
  log_refusal();
  if (reserve_ >= 0) ::close(reserve_);
  const int refused = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
  if (refused >= 0) ::close(refused);
  reserve_ = open_reserve();
}

// Instead of admitting it: its descriptor is needed.
void Worker::give_up(Connection::Socket socket) {
  log_refusal();
  error_code ignored;
  socket.close(ignored);
  reserve_ = open_reserve();
}

void Worker::log_refusal() {
  if (!may_log(next_refusal_log_, loop_.turn_time())) return;
  log_event(LogLevel::warn,
            "no descriptors left: connections are refused; raise the limit on open "
            "files, or set --max-connections below it");
}

void Worker::admit(Connection::Socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone already
  const auto address = unmapped(peer.address());
  if (!shared_.admission.enter(address)) return;
  const SessionId id = ++shared_.last_session;
  auto connection = std::make_unique<LineConnection>(
      *this, std::move(socket), shared_.tls.open_channel(), address, service_, id);
  LineConnection& started = *connection;
  connections_.emplace(id, std::move(connection));
  round_.push_back(&started);
  if (options().line_is_protected() && !address.is_loopback()) {
    log_protected(address);
    started.turn_away();
  }
  started.start();
}

void Worker::log_protected(const boost::asio::ip::address& peer) {
  if (!may_log(next_protected_log_, loop_.turn_time())) return;
  log_event(LogLevel::warn,
            "protected mode: only loopback is served; to serve others choose --host or set "
            "--auth-token",
            {{"peer", peer.to_string()}});
}

void Worker::ended(LineConnection& connection) {
  const auto found = connections_.find(connection.id());
  shared_.admission.leave(connection.address());
  round_.remove(&connection);
  leaving_.push_back(std::move(found->second));
  connections_.erase(found);
}

// From other threads, and from this one.

void Worker::settled(const Settled& settled) noexcept {
  leave({.id = settled.id, .what = Delivery::wait, .settled = settled});
}

void Worker::deliver(std::span<const std::uint64_t> subscribers,
                     const std::shared_ptr<const Signal>& signal) noexcept {
  for (const std::uint64_t id : subscribers) {
    leave({.id = id, .what = Delivery::signal, .sig = signal});
  }
}

void Worker::ask_stats(SessionId id) {
  boost::asio::post(shared_.side_work, [this, id] {
    std::string json = stats_json(shared_.engine, shared_.hub, shared_.admission.connections());
    if (!json.empty()) leave({.id = id, .what = Delivery::stats, .json = std::move(json)});
  });
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
    const auto found = connections_.find(delivery.id);
    if (found == connections_.end()) continue;  // it has closed meanwhile
    LineConnection& connection = *found->second;
    switch (delivery.what) {
      case Delivery::wait: connection.settled(delivery.settled); break;
      case Delivery::stats: connection.stats(delivery.json); break;
      case Delivery::signal: connection.push(delivery.sig->line()); break;
    }
  }
  return !inbox.empty();
}

// Turns.

void Worker::end_turn() {
  // What is told may let a connection go on, which may settle another wait, and so on: all of it
  // belongs to this turn, and goes out with its one write per connection.
  Position position = 0;  // what this turn's answers rest on
  do {
    position = std::max(position, batch_.commit());
  } while (take_inbox());
  while (LineConnection* connection = touched_.pop_front()) connection->flush(position);
  batch_.commit();  // a connection that broke released what it held
  release_held();
  std::erase_if(leaving_, [this](const auto& c) {
    if (!c->may_be_destroyed()) return false;
    if (c->watched.linked()) watched_.remove(c.get());
    if (c->held.linked()) held_.remove(c.get());
    return true;
  });
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
  const auto now = std::chrono::steady_clock::now();
  LineConnection* next = watched_.front();
  while (LineConnection* connection = next) {
    next = watched_.next(connection);
    if (!connection->watch(now)) watched_.remove(connection);
  }
  // A part of all connections, so that each has its turn about once a second.
  constexpr std::size_t kTicksPerRound = 1s / Loop::kTick;
  for (std::size_t left = connections_.size() / kTicksPerRound + 1; left > 0; --left) {
    LineConnection* connection = round_.pop_front();
    if (connection == nullptr) break;
    round_.push_back(connection);
    connection->check_silence(now);
  }
}

}  // namespace lockd
