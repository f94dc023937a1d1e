#include "histories/timeline.h"

#include <algorithm>

namespace lockd::histories {
namespace {

// How long after the end of a lease that end may take to be on the disk.
constexpr Instant kEndDurableMax = kSecond;

}  // namespace

Timeline::Timeline(const History& history)
    : servers_(std::max<std::size_t>(history.servers.size(), 1)) {
  for (std::size_t i = 0; i < history.servers.size(); ++i) {
    servers_[i].auto_release = history.servers[i].auto_release;
  }
  for (const Operation& operation : history.operations) {
    switch (operation.function) {
      case Function::disconnect: endings_[operation.conn] = {operation.call, operation.ret}; break;
      case Function::lost: endings_[operation.conn] = {kNever, operation.ret}; break;
      case Function::fault: add_fault(operation, history.faults[operation.fault]); break;
      case Function::heal: healed_ = operation.call; break;
      default: break;
    }
  }
  const auto earlier = [](const Span& a, const Span& b) { return a.from < b.from; };
  for (Server& server : servers_) {
    std::sort(server.restarts.begin(), server.restarts.end(), earlier);
    std::sort(server.stops.begin(), server.stops.end(), earlier);
    std::sort(server.suspends.begin(), server.suspends.end(), earlier);
  }
}

void Timeline::add_fault(const Operation& operation, std::string_view name) {
  Server& server = servers_[operation.server];
  const Span span{operation.call, operation.ret};
  if (name == kRestart || name == kFailover) server.restarts.push_back(span);
  if (name == kReboot) server.reboots.push_back(span);
  if (name == kStop || name == kOutage) server.stops.push_back(span);
  if (name == kFailover) server.is_cluster = true;
  if (name == kSuspend) server.suspends.push_back(span);
  if (name == kSyncError) server.failures.push_back({operation.life, operation.call});
}

Instant Timeline::disconnected(const Operation& operation) const {
  const bool releases = operation.via == Via::tcp || operation.via == Via::tls;
  if (!releases || !servers_[operation.server].auto_release) return kNever;
  const auto found = endings_.find(operation.conn);
  return found == endings_.end() ? kNever : found->second.noticed;
}

Instant Timeline::over(std::uint64_t conn) const {
  const auto found = endings_.find(conn);
  return found == endings_.end() ? kNever : found->second.over;
}

Instant Timeline::armed_until(std::uint16_t server, Instant from, Instant until,
                              Instant ttl) const {
  if (until == kNever) return kNever;
  const auto& reboots = servers_[server].reboots;
  for (const Span& restart : servers_[server].restarts) {
    const bool is_reboot = std::ranges::find(reboots, restart.from, &Span::from) != reboots.end();
    if (restart.from > until + (is_reboot ? kEndDurableMax : 0)) continue;
    if (restart.to >= from) until = std::max(until, restart.to + ttl);
  }
  return until;
}

Instant Timeline::next_suspend(std::uint16_t server, Instant from) const {
  for (const Span& suspend : servers_[server].suspends) {
    if (suspend.to >= from) return suspend.from;
  }
  return kNever;
}

// Spans of one kind do not overlap each other, so they end in the order in which they begin.
bool Timeline::meets(const std::vector<Span>& spans, Instant from, Instant to) {
  const auto first = std::partition_point(spans.begin(), spans.end(),
                                          [from](const Span& span) { return span.to < from; });
  return first != spans.end() && first->from <= to;
}

bool Timeline::restarted(std::uint16_t server, Instant from, Instant to) const {
  return meets(servers_[server].restarts, from, to);
}

bool Timeline::interrupted(std::uint16_t server, Instant from, Instant to) const {
  return restarted(server, from, to) || meets(servers_[server].stops, from, to);
}

Instant Timeline::failed(std::uint16_t server, std::uint32_t life) const {
  for (const Life& failure : servers_[server].failures) {
    if (failure.life == life) return failure.failed;
  }
  return kNever;
}

}  // namespace lockd::histories
