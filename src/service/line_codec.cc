#include "service/line_codec.h"

#include "protocol/line/line_reply.h"

namespace lockd {
namespace {

void write_rejection(std::string& out, const Rejected& rejected) {
  switch (rejected.reason) {
    case Rejected::Reason::denied: return write_status(out, kStatusErrorDenied);
    case Rejected::Reason::draining: return write_status(out, kStatusErrorDraining);
    default: return write_status(out, kStatusError);
  }
}

}  // namespace

Operation operation_of(Command command) {
  switch (command) {
    case Command::acquire: return Operation::acquire;
    case Command::release: return Operation::release;
    case Command::renew: return Operation::renew;
    case Command::enqueue: return Operation::enqueue;
    case Command::await_turn: return Operation::await_turn;
    case Command::client: return Operation::identify;
    case Command::stats: return Operation::read_stats;
    case Command::barrier: return Operation::confirm_leadership;
    case Command::listen: return Operation::listen;
    case Command::unlisten: return Operation::unlisten;
    case Command::signal: return Operation::publish;
    case Command::ping:
    case Command::auth:
    case Command::api:
    case Command::peer: break;
  }
  return Operation::ping;
}

std::shared_ptr<const ReportRequest> stats_request() {
  return std::make_shared<const ReportRequest>(ReportRequest{.what = ReportRequest::What::stats});
}

void write_reply(std::string& out, Command command, const Reply& reply, const Options& options) {
  if (const auto* granted = std::get_if<Granted>(&reply)) {
    const Grant& grant = granted->grant;
    write_grant(out, command, {grant.fence, grant.secret}, grant.ttl);
  } else if (const auto* renewed = std::get_if<Renewed>(&reply)) {
    write_remaining(out, renewed->grant.ttl);
  } else if (const auto* refused = std::get_if<Refused>(&reply)) {
    if (refused->outcome == Outcome::not_leader) {
      return write_status(out, "error_not_leader " + refused->leader->line);
    }
    write_status(out, status_of(command, refused->outcome, options.detailed_errors));
  } else if (const auto* rejected = std::get_if<Rejected>(&reply)) {
    write_rejection(out, *rejected);
  } else if (const auto* sent = std::get_if<SignalSent>(&reply)) {
    write_count(out, sent->delivered);
  } else if (std::holds_alternative<Queued>(reply)) {
    write_status(out, status_of(command, Outcome::queued, options.detailed_errors));
  } else {
    write_status(out, kStatusOk);
  }
}

}  // namespace lockd
