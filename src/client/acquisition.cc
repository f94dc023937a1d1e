#include "client/acquisition.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/calls.h"
#include "client/leader_calls.h"
#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {
namespace {

using std::chrono::seconds;

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

}  // namespace

seconds seconds_to_name(Duration wait) {
  constexpr auto kMax = std::chrono::floor<seconds>(kDurationMax);
  return std::min(std::chrono::ceil<seconds>(std::min<Duration>(wait, kMax)), kMax);
}

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

Result<HeldLock> take_over(const std::shared_ptr<Renewer>& renewer,
                           std::unique_ptr<LineConnection> connection, Hold::Terms terms,
                           LineGrant grant, std::stop_token stop) {
  if (BootClock::now() >= Renewal::due(grant.sent_at, grant.lease)) {
    Status status = confirm(terms, *connection, grant, std::move(stop));
    if (!status) return status;
  }
  auto hold = std::make_shared<Hold>(std::move(terms), std::move(grant));
  return Renewer::keep(renewer, std::move(hold), std::move(connection));
}

}  // namespace lockd::client
