#include "loadgen/load.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <string_view>
#include <utility>

#include "client/endpoint.h"
#include "client/socket.h"
#include "client/stoppable_wait.h"
#include "lockd/client/client.h"

namespace lockd::loadgen {
namespace {

using namespace std::chrono_literals;
using Clock = client::BootClock;
using Time = Clock::time_point;
using Why = LoadError::Why;

constexpr std::uint64_t kWithoutEnd = std::numeric_limits<std::uint64_t>::max();

[[noreturn]] void fail(const client::Status& status) {
  using client::Outcome;
  Why why = Why::unreachable;
  if (status.outcome == Outcome::invalid) why = Why::misconfigured;
  if (status.outcome == Outcome::untrusted) why = Why::untrusted;
  throw LoadError(why, client::describe(status));
}

// Shown of a reply that is not as it must be: of HTTP, the body.
std::string_view told_by(std::string_view reply) {
  const std::size_t head = reply.find("\r\n\r\n");
  if (head != std::string_view::npos) reply.remove_prefix(head + 4);
  while (reply.ends_with('\n') || reply.ends_with('\r')) reply.remove_suffix(1);
  return reply;
}

[[noreturn]] void refuse(const Dialogue& dialogue, std::string_view reply) {
  const std::string_view told = told_by(reply);
  const bool timed_out = told == "timeout" || told.find("wait_timeout") != std::string_view::npos;
  throw LoadError(timed_out ? Why::timed_out : Why::refused,
                  std::string("the reply to ") + (dialogue.releases() ? "release" : "acquire") +
                      " is \"" + std::string(told) + '"');
}

struct Worker;

// One round at a time, on one key.
struct Lane {
  Lane(Worker& owner, Dialogue business) : worker(owner), dialogue(std::move(business)) {}

  Worker& worker;
  Dialogue dialogue;
  bool busy = false;
  Time asked_at{};
  Time granted_at{};
};

// What is asked goes out with flush(), whose replies come back in the same order.
class LoadConnection {
 public:
  // Returns when it is open, and the secret was accepted.
  LoadConnection(Protocol protocol, const LoadServer& server) : protocol_(protocol) {
    client::ConnectOptions options = server.options;
    if (protocol != Protocol::line) options.auth_token = options.auth_token_file = "";
    auto made = client::Endpoint::make(server.address, options);
    if (!made) fail(made);
    const Time deadline = client::later(Clock::now(), options.connect_timeout);
    auto addresses = client::resolve(server.address, deadline, {});
    if (!addresses) fail(addresses);
    socket_ =
        std::make_unique<client::Socket>(*made, std::move(*addresses), Clock::now(), deadline);
    while (!socket_->is_open()) advance_until(deadline);
    const auto handshake = (*made)->handshake();
    if (!handshake) fail(handshake);
    if (!handshake->empty()) greet(*handshake, deadline);
  }

  // What it is to be watched for; and whether that has changed since the last call.
  int descriptor() const { return socket_->interest().fd; }
  bool has_unsent() const { return (socket_->interest().events & POLLOUT) != 0; }
  bool interest_changed() {
    const bool before = std::exchange(had_unsent_, has_unsent());
    return before != had_unsent_;
  }

  void ask(Lane& lane) {
    output_ += lane.dialogue.request();
    asked_.push_back(&lane);
  }
  void flush() {
    if (output_.empty()) return;
    socket_->send(output_);
    output_.clear();
    throw_if_closed();
  }

  // Passes on each reply that has come, and whose it is.
  template <typename Take>
  void receive(Time now, Take take) {
    socket_->advance(now);
    std::string& input = socket_->input();
    std::size_t start = 0;
    for (std::size_t size; (size = next_reply(start)) > 0; start += size) {
      if (asked_.empty()) throw LoadError(Why::garbled, "a reply came that nobody asked for");
      Lane& lane = *asked_.front();
      asked_.pop_front();
      take(lane, std::string_view(input).substr(start, size));
    }
    input.erase(0, start);
    throw_if_closed();
  }

 private:
  std::size_t next_reply(std::size_t start) const {
    return reply_size(protocol_, std::string_view(socket_->input()).substr(start));
  }

  void greet(const std::string& handshake, Time deadline) {
    socket_->send(handshake);
    while (next_reply(0) == 0) advance_until(deadline);
    if (socket_->input() != "ok\n") {
      throw LoadError(Why::untrusted, "the token is wrong, or one is not asked for");
    }
    socket_->input().clear();
  }

  // One step.
  void advance_until(Time deadline) {
    throw_if_closed();
    pollfd interest = socket_->interest();
    ::poll(&interest, 1, 100);
    socket_->advance(Clock::now());
    if (socket_->is_open() && Clock::now() >= deadline) {
      throw LoadError(Why::unreachable, "the server does not answer to the secret in time");
    }
  }

  void throw_if_closed() const {
    if (socket_->is_closed()) fail(socket_->failure());
  }

  const Protocol protocol_;
  std::unique_ptr<client::Socket> socket_;
  std::deque<Lane*> asked_;
  std::string output_;
  bool had_unsent_ = false;
};

// Its connections, all to the server that has its keys, and the rounds it has yet to begin.
struct Worker {
  std::vector<LoadConnection*> connections;
  std::uint64_t rounds_left = 0;
  std::uint64_t begun = 0;
};

}  // namespace

class Load::Impl {
 public:
  Impl(const LoadPlan& plan, const std::vector<LoadServer>& servers)
      : plan_(plan), servers_(servers) {
    if (servers_.empty()) throw LoadError(Why::misconfigured, "no server is named");
    for (std::uint64_t i = 0; i < plan_.workers; ++i) add_worker(i);
  }
  ~Impl() { ::close(epoll_); }

  LoadStats run(std::uint64_t rounds_each, Time end, const OnProgress& on_progress) {
    stats_ = {};
    const Time start = last_reply_ = Clock::now();
    const bool is_endless = rounds_each == kWithoutEnd;
    const std::uint64_t rounds = is_endless ? kWithoutEnd : rounds_each * plan_.workers;
    for (const auto& worker : workers_) worker->rounds_left = rounds_each;
    for (const auto& lane : lanes_) {
      if (!lane->busy) begin_round(*lane, start);
    }
    flush_touched();
    Time shown = start;
    for (Time now = start; stats_.rounds < rounds && now < end; now = Clock::now()) {
      turn(now);
      if (now - last_reply_ > patience()) {
        throw LoadError(Why::unreachable,
                        "no reply has come for " + std::to_string(patience() / 1s) + " seconds");
      }
      if (on_progress && now - shown >= 100ms) {
        on_progress(stats_.rounds);
        shown = now;
      }
    }
    if (on_progress) on_progress(stats_.rounds);
    stats_.elapsed = (is_endless ? Clock::now() : last_reply_) - start;
    return stats_;
  }

 private:
  void add_worker(std::uint64_t number) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    const std::string name = plan_.key + '_' + std::to_string(number);
    const std::string first = plan_.one_key ? plan_.key : name;
    const std::size_t server = client::shard_of(first, servers_.size());
    for (std::uint64_t i = 0; i < plan_.connections; ++i) {
      worker.connections.push_back(&connect(servers_[server]));
    }
    // Unlike any other load's: a holder that asks again would get what it has.
    const DialogueTerms terms{.wait_s = plan_.wait_s,
                              .lease_s = plan_.lease_s,
                              .host = servers_[server].address.to_string(),
                              .holder = name + '.' + std::to_string(::getpid()),
                              .auth_token = servers_[server].options.auth_token};
    std::uint64_t suffix = 0;
    for (std::uint64_t i = 0; i < plan_.pipeline; ++i) {
      const std::string key = i == 0 || plan_.one_key ? first : key_of(name, server, suffix);
      lanes_.push_back(std::make_unique<Lane>(worker, Dialogue(plan_.protocol, key, terms)));
    }
  }

  LoadConnection& connect(const LoadServer& server) {
    LoadConnection& connection =
        *connections_.emplace_back(std::make_unique<LoadConnection>(plan_.protocol, server));
    watch(connection, EPOLL_CTL_ADD, EPOLLIN);
    return connection;
  }

  // Another key of the same worker, on the same server.
  std::string key_of(const std::string& name, std::size_t server, std::uint64_t& suffix) const {
    for (;;) {
      std::string key = name + '_' + std::to_string(suffix++);
      if (client::shard_of(key, servers_.size()) == server) return key;
    }
  }

  // If the worker has one left.
  void begin_round(Lane& lane, Time now) {
    Worker& worker = lane.worker;
    lane.busy = worker.rounds_left > 0;
    if (!lane.busy) return;
    --worker.rounds_left;
    lane.asked_at = now;
    LoadConnection& connection = *worker.connections[worker.begun++ % worker.connections.size()];
    connection.ask(lane);
    touched_.push_back(&connection);
  }

  void turn(Time now) {
    std::array<epoll_event, 256> events;
    const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 100);
    if (ready > 0) now = last_reply_ = Clock::now();
    for (int i = 0; i < ready; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<LoadConnection*>(event.data.ptr);
      connection.receive(
          now, [&](Lane& lane, std::string_view reply) { take(connection, lane, reply, now); });
      touched_.push_back(&connection);
    }
    flush_touched();
  }

  void take(LoadConnection& connection, Lane& lane, std::string_view reply, Time now) {
    const bool released = lane.dialogue.releases();
    if (!lane.dialogue.take(reply)) refuse(lane.dialogue, reply);
    if (!released) {
      lane.granted_at = now;
      stats_.acquire.record(now - lane.asked_at);
      stats_.request.record(now - lane.asked_at);
      return connection.ask(lane);
    }
    stats_.release.record(now - lane.granted_at);
    stats_.request.record(now - lane.granted_at);
    stats_.round.record(now - lane.asked_at);
    ++stats_.rounds;
    begin_round(lane, now);
  }

  void flush_touched() {
    for (LoadConnection* const connection : touched_) flush(*connection);
    touched_.clear();
  }

  // A server that takes no more is waited for.
  void flush(LoadConnection& connection) {
    connection.flush();
    if (!connection.interest_changed()) return;
    watch(connection, EPOLL_CTL_MOD, connection.has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  void watch(LoadConnection& connection, int operation, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.ptr = &connection}};
    ::epoll_ctl(epoll_, operation, connection.descriptor(), &event);
  }

  // Nobody waits longer than the plan says, so somebody must have been answered.
  std::chrono::nanoseconds patience() const {
    constexpr std::uint64_t kMost = 1'000'000;
    return std::chrono::seconds(std::min(plan_.wait_s, kMost)) +
           servers_.front().options.reply_timeout;
  }

  const LoadPlan plan_;
  const std::vector<LoadServer> servers_;
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<LoadConnection*> touched_;  // in this turn
  LoadStats stats_;
  Time last_reply_{};
};

Load::Load(const LoadPlan& plan, const std::vector<LoadServer>& servers)
    : impl_(std::make_unique<Impl>(plan, servers)) {}
Load::~Load() = default;

LoadStats Load::run_rounds(std::uint64_t rounds, const OnProgress& on_progress) {
  return impl_->run(rounds, client::kNever, on_progress);
}

LoadStats Load::run_for(std::chrono::nanoseconds time) {
  return impl_->run(kWithoutEnd, client::later(Clock::now(), time), {});
}

}  // namespace lockd::loadgen
