#include "client/calls.h"

#include <algorithm>
#include <utility>

#include "client/stoppable_wait.h"

namespace lockd::client {

Status converse_until(LineConnection& connection, BootClock::time_point deadline,
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
      converse_until(*opened, kNever, std::move(stop), [&] { return opened->is_ready(); });
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
  Status status = converse_until(connection, deadline, std::move(stop), [&] {
    while (auto line = connection.take_reply()) {
      if (earlier == 0) {
        reply.line = std::move(*line);
        return true;
      }
      --earlier;  // that of a question whose asker is gone
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

}  // namespace lockd::client
