#include "lockd/client/connection.h"

#include <algorithm>
#include <utility>

#include "client/calls.h"
#include "client/line_connection.h"
#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {
namespace {

LineConnection* connection_of(const auto& impl) {
  return impl == nullptr ? nullptr : impl->connection.get();
}

bool ends_connection(Outcome outcome) {
  return outcome == Outcome::garbled ||  // whatever comes next would be guesswork
         outcome == Outcome::unauthorized;
}

// Asks, and makes of the reply what `read` makes of it: a Status or a Result.
template <class Read>
auto call(LineConnection* connection, const Result<std::string>& lines, std::stop_token stop,
          const Read& read, Duration wait = {},
          LineConnection::ReplySize size = LineConnection::ReplySize::short_line)
    -> decltype(read(Reply{})) {
  if (!lines) return static_cast<const Status&>(lines);
  if (connection == nullptr) return Status{Outcome::disconnected};
  auto reply = ask(*connection, {.lines = *lines, .wait = wait, .size = size}, std::move(stop));
  if (!reply) return Status(std::move(reply));
  auto result = read(*reply);
  if (ends_connection(result.outcome)) connection->close(result);
  return result;
}

Status read_status(const Reply& reply) { return status_of(reply.line); }

auto read_grant(Lease asked) {
  return [asked](const Reply& reply) {
    auto grant = grant_of(reply.line, asked);
    grant->sent_at = reply.sent_at;
    return grant;
  };
}

// Waits for what `take` takes, and pings a server that says nothing for long.
template <class Push, class Ping>
Result<Push> next_push(LineConnection* connection, Duration wait, const std::stop_token& stop,
                       std::optional<Push> (LineConnection::*take)(), const Ping& ping) {
  if (connection == nullptr) return Status{Outcome::disconnected};
  const auto deadline = later(BootClock::now(), std::max(wait, Duration(0)));
  for (;;) {
    std::optional<Push> push;
    const auto quiet_until =
        std::min(deadline, later(connection->heard_at(), Connection::kPingInterval));
    Status status = advance_until(*connection, quiet_until, stop, [&] {
      push = (connection->*take)();
      return push.has_value();
    });
    if (push) return std::move(*push);
    if (status.outcome != Outcome::timeout || quiet_until == deadline) return status;
    if (Status alive = ping(); !alive) return alive;
  }
}

}  // namespace

BootClock::time_point LineGrant::certain_until() const noexcept { return later(sent_at, lease); }

BootClock::time_point LineRenewal::certain_until() const noexcept {
  return later(sent_at, remaining);
}

Connection::Connection() noexcept = default;
Connection::Connection(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

Result<Connection> Connection::open(const Address& address, const Options& options,
                                    std::stop_token stop) {
  auto endpoint = Endpoint::make(address, options);
  if (!endpoint) return Status(std::move(endpoint));
  const auto deadline = later(BootClock::now(), options.connect_timeout);
  auto connection = open_connection(std::move(*endpoint), deadline, std::move(stop));
  if (!connection) return Status(std::move(connection));
  return Connection(std::make_unique<Impl>(std::move(*connection)));
}

bool Connection::is_open() const noexcept {
  return impl_ != nullptr && !impl_->connection->is_closed();
}

void Connection::close() noexcept {
  if (impl_ != nullptr) impl_->connection->close({Outcome::disconnected});
}

Result<LineGrant> Connection::acquire(const LineAcquire& request, std::stop_token stop) {
  return call(connection_of(impl_), acquire_lines(request), std::move(stop),
              read_grant(request.lease), request.wait);
}

Status Connection::release(const LineHold& hold, std::stop_token stop) {
  return call(connection_of(impl_), release_lines(hold), std::move(stop), read_status);
}

Result<LineRenewal> Connection::renew(const LineHold& hold, Lease lease, std::stop_token stop) {
  return call(connection_of(impl_), renew_lines(hold, lease), std::move(stop),
              [lease](const Reply& reply) {
                auto renewal = renewal_of(reply.line, lease);
                renewal->sent_at = reply.sent_at;
                return renewal;
              });
}

Result<LineGrant> Connection::enqueue(const LineEnqueue& request, std::stop_token stop) {
  return call(connection_of(impl_), enqueue_lines(request), std::move(stop),
              read_grant(request.lease));
}

Result<LineGrant> Connection::await_turn(const LineAwait& request, std::stop_token stop) {
  return call(connection_of(impl_), await_lines(request), std::move(stop), read_grant({}),
              request.wait);
}

Status Connection::listen(std::string_view pattern, std::string_view group, std::stop_token stop) {
  return call(connection_of(impl_), listen_lines(pattern, group), std::move(stop), read_status);
}

Status Connection::unlisten(std::string_view pattern, std::string_view group,
                            std::stop_token stop) {
  return call(connection_of(impl_), unlisten_lines(pattern, group), std::move(stop), read_status);
}

Result<std::uint64_t> Connection::publish(std::string_view channel, std::string_view payload,
                                          std::stop_token stop) {
  return call(connection_of(impl_), publish_lines(channel, payload), std::move(stop),
              [](const Reply& reply) { return count_of(reply.line); });
}

Result<ApiAnswer> Connection::api(const ApiCall& asked, std::stop_token stop) {
  return call(
      connection_of(impl_), api_lines(asked), std::move(stop),
      [](const Reply& reply) { return api_answer_of(reply.line); }, asked.wait);
}

Result<Signal> Connection::next_signal(Duration wait, std::stop_token stop) {
  return next_push(connection_of(impl_), wait, stop, &LineConnection::take_signal,
                   [&] { return ping(stop); });
}

Result<std::string> Connection::next_event(Duration wait, std::stop_token stop) {
  LineConnection* const connection = connection_of(impl_);
  // What has come is taken before more is read, so that no more is kept than comes at once.
  if (connection != nullptr) {
    if (auto event = connection->take_event()) return std::move(*event);
  }
  return next_push(connection, wait, stop, &LineConnection::take_event, [&] { return ping(stop); });
}

std::uint64_t Connection::signals_dropped() const noexcept {
  return impl_ == nullptr ? 0 : impl_->connection->signals_dropped();
}

Result<std::string> Connection::stats(std::stop_token stop) {
  return call(
      connection_of(impl_), std::string(kStatsLines), std::move(stop),
      [](const Reply& reply) { return stats_of(reply.line); }, {},
      LineConnection::ReplySize::stats);
}

Status Connection::ping(std::stop_token stop) {
  return call(connection_of(impl_), std::string(kPingLines), std::move(stop), read_status);
}

Status Connection::barrier(std::stop_token stop) {
  return call(connection_of(impl_), std::string(kBarrierLines), std::move(stop), read_status);
}

}  // namespace lockd::client
