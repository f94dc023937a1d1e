#include "client/calls.h"

#include <algorithm>
#include <utility>

#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {

Status advance_until(LineConnection& connection, BootClock::time_point deadline,
                     std::stop_token stop, const std::function<bool()>& done) {
  const StoppableWait pause(std::move(stop));
  for (;;) {
    const auto now = BootClock::now();
    connection.advance(now);
    if (done()) return {};
    if (connection.is_closed()) return connection.failure();
    if (pause.stop_requested()) return {Outcome::cancelled};
    if (now >= deadline) return {Outcome::timeout};
    pause.wait(connection.interest(), std::min(deadline, connection.deadline()));
  }
}

Result<std::unique_ptr<LineConnection>> open_connection(std::shared_ptr<const Endpoint> endpoint,
                                                        BootClock::time_point deadline,
                                                        std::stop_token stop) {
  if (stop.stop_requested()) return Status{Outcome::cancelled};
  auto addresses = resolve(endpoint->address, deadline, stop);
  if (!addresses) return Status(std::move(addresses));
  auto opened =
      std::make_unique<LineConnection>(std::move(endpoint), *addresses, BootClock::now(), deadline);
  // The connection closes itself at its deadline, and says what it was that took so long.
  Status status =
      advance_until(*opened, kNever, std::move(stop), [&] { return opened->is_ready(); });
  if (!status) return status;
  return opened;
}

Result<Reply> ask(LineConnection& connection, const Request& request, std::stop_token stop) {
  const auto patience =
      later(later(BootClock::now(), request.wait), connection.endpoint()->options.reply_timeout);
  return ask_until(connection, request, patience, std::move(stop));
}

Result<Reply> ask_until(LineConnection& connection, const Request& request,
                        BootClock::time_point deadline, std::stop_token stop) {
  const auto cancel = [&] {
    if (!request.on_cancel.empty() && connection.is_ready()) connection.ask(request.on_cancel);
    connection.close({Outcome::cancelled});
  };
  if (stop.stop_requested()) cancel();
  if (connection.is_closed()) return connection.failure();
  std::size_t earlier = connection.outstanding();
  Reply reply{.sent_at = BootClock::now()};
  connection.ask(request.lines, request.size);
  Status status = advance_until(connection, deadline, std::move(stop), [&] {
    while (auto line = connection.take_reply()) {
      if (earlier == 0) {
        reply.line = std::move(*line);
        return true;
      }
      --earlier;  // that of a request whose caller is gone
    }
    return false;
  });
  if (status) return reply;
  if (status.outcome == Outcome::timeout) status = {Outcome::no_reply};
  if (status.outcome == Outcome::cancelled) cancel();
  connection.close(status);
  return status;
}

Status pause_until(BootClock::time_point time, std::stop_token stop) {
  const StoppableWait pause(std::move(stop));
  while (!pause.stop_requested()) {
    if (BootClock::now() >= time) return {};
    pause.wait({.fd = -1}, time);
  }
  return {Outcome::cancelled};
}

namespace {

using Time = BootClock::time_point;

// What one server may take, so that there is time for all, and for a second look at one.
Time attempt_until(Time now, Time deadline, const Cluster& cluster) {
  if (cluster.is_alone()) return deadline;
  const auto parts = static_cast<BootClock::rep>(cluster.size() + 1);
  return now + std::max(deadline - now, BootClock::duration{}) / parts;
}

Result<std::unique_ptr<LineConnection>> open_at(Cluster& cluster, std::size_t index, Time deadline,
                                                std::stop_token stop) {
  auto opened = open_connection(cluster.member(index), deadline, std::move(stop));
  if (opened) cluster.learn(index, (*opened)->addresses());
  return opened;
}

Result<std::unique_ptr<LineConnection>> open_if_it_leads(Cluster& cluster, std::size_t index,
                                                         Time deadline, std::stop_token stop) {
  auto opened = open_at(cluster, index, deadline, stop);
  if (!opened) return opened;
  const auto reply = ask_until(**opened, {.lines = kBarrierLines}, deadline, std::move(stop));
  if (!reply) return static_cast<const Status&>(reply);
  if (Status status = status_of(reply->line); !status) return status;
  return opened;
}

// A reply is none when its server does not lead.
Result<Reply> ask_if_it_leads(LineConnection& connection, const Request& request, Time deadline,
                              std::stop_token stop) {
  auto reply = ask_until(connection, request, deadline, std::move(stop));
  if (!reply) return reply;
  if (Status status = request.read_status(reply->line); moves_on(status.outcome)) return status;
  return reply;
}

// With the addresses that are known: a release does not wait for a name server.
Result<Reply> ask_at(Cluster& cluster, std::size_t index, const Request& request, Time deadline,
                     std::stop_token stop) {
  const auto addresses = cluster.addresses_of(index);
  if (!addresses) {
    cluster.look_up(index);
    return {Outcome::unreachable, "cannot look up " + cluster.member(index)->address.host};
  }
  LineConnection connection(cluster.member(index), *addresses, BootClock::now(), deadline);
  Status ready = advance_until(connection, kNever, stop, [&] { return connection.is_ready(); });
  if (!ready) return ready;
  return ask_if_it_leads(connection, request, deadline, std::move(stop));
}

Result<Reply> ask_leader(LeaderSearch& search, const Request& request, Time deadline,
                         std::stop_token stop) {
  Cluster& cluster = search.cluster();
  for (;;) {
    if (Status waited = pause_until(search.not_before(), stop); !waited) return waited;
    const Time until = attempt_until(BootClock::now(), deadline, cluster);
    auto reply = ask_at(cluster, search.here(), request, until, stop);
    if (reply) cluster.set_leader(search.here());
    if (reply || !moves_on(reply.outcome)) return reply;
    search.move_on(reply, BootClock::now());
    const Time next = std::max(BootClock::now(), search.not_before());
    if (search.is_hopeless() || next >= deadline) {
      return cluster.is_alone() ? reply : search.verdict();
    }
  }
}

}  // namespace

Result<std::unique_ptr<LineConnection>> open_at_leader(LeaderSearch& search, std::stop_token stop) {
  Cluster& cluster = search.cluster();
  const Time deadline = later(BootClock::now(), cluster.options().connect_timeout);
  if (cluster.is_alone()) return open_at(cluster, 0, deadline, std::move(stop));
  // For those that are not met now: the background thread may have to go there.
  for (std::size_t index = 0; index < cluster.size(); ++index) {
    if (!cluster.addresses_of(index)) cluster.look_up(index);
  }
  for (;;) {
    if (Status waited = pause_until(search.not_before(), stop); !waited) return waited;
    auto opened = open_if_it_leads(cluster, search.here(),
                                   attempt_until(BootClock::now(), deadline, cluster), stop);
    if (opened) cluster.set_leader(search.here());
    if (opened || opened.outcome == Outcome::cancelled) return opened;
    search.move_on(opened, BootClock::now());
    const Time next = std::max(BootClock::now(), search.not_before());
    if (search.is_hopeless() || next >= deadline) return search.verdict();
  }
}

Result<Reply> ask_by_token(const std::shared_ptr<Cluster>& cluster, LineConnection* connection,
                           const Request& request, Time reply_until, Time deadline,
                           std::stop_token stop) {
  const Time now = BootClock::now();
  Result<Reply> reply = Status{Outcome::disconnected};
  if (connection != nullptr && connection->is_ready()) {
    reply = ask_if_it_leads(*connection, request, reply_until, stop);
  }
  const bool alone = cluster->is_alone();
  const bool asks_again = alone ? reply.outcome == Outcome::disconnected : moves_on(reply.outcome);
  if (!asks_again) return reply;
  LeaderSearch search(cluster);
  if (connection != nullptr && !alone && search.here() == cluster->index_of(*connection)) {
    search.move_on(reply, now);
  }
  return ask_leader(search, request, deadline, std::move(stop));
}

}  // namespace lockd::client
