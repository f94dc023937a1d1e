#include "server/session/output_gate.h"

#include <algorithm>

namespace lockd {

// The wait is copied only if the grant may have to be revoked.
void OutputGate::note_hand_off(HostedSession& hosted, const WaitResult& result) {
  HandOff& hand_off = hosted.gate.hand_offs.emplace_back();
  hand_off.grant = result.grant;
  hand_off.written_before = hosted.transport->bytes_written();
  if (hosted.session->grant_outlives_session()) hand_off.wait = hosted.session->executor().wait();
}

void OutputGate::send_or_cork(HostedSession& hosted) {
  Transport& transport = *hosted.transport;
  GateState& gate = hosted.gate;
  if (transport.output().empty()) return;
  gate.is_corked = !is_durable(gate.depends_on);
  if (!gate.is_corked) {
    count_hand_offs(hosted, transport.bytes_written());
    return transport.flush();
  }
  transport.cork();
  gate.corked_at = gate.depends_on;
  gate.corked_until = transport.bytes_written();
  corked_.push({gate.corked_at, hosted.id()});
}

void OutputGate::uncork(HostedSession& hosted) {
  count_hand_offs(hosted, hosted.gate.corked_until);
  hosted.gate.is_corked = false;
  if (hosted.transport->uncork()) send_or_cork(hosted);
}

// Looks again after the flag is set: progress after that wakes the loop.
SessionId OutputGate::next_durable() {
  while (!corked_.empty()) {
    const Corked next = corked_.top();
    if (is_durable(next.position)) {
      corked_.pop();
      last_position_ = next.position;
      return next.id;
    }
    if (wants_durable_.exchange(true)) break;
  }
  return 0;
}

bool OutputGate::has_undelivered(const HostedSession& hosted) {
  return std::ranges::any_of(hosted.gate.hand_offs,
                             [](const HandOff& one) { return !one.wait.empty(); });
}

void OutputGate::revoke_undelivered(HostedSession& hosted, Batch& batch) {
  auto& hand_offs = hosted.gate.hand_offs;
  const auto outlives = [](const HandOff& one) { return !one.wait.empty(); };
  const auto first = std::ranges::find_if(hand_offs, outlives);
  if (first == hand_offs.end()) return;
  hosted.transport->roll_back_output(first->written_before);
  for (const HandOff& one : hand_offs) {
    if (outlives(one)) batch.withdraw(one.wait.hold_of(one.grant));
  }
  hand_offs.clear();
}

// The time from a grant to when its reply may leave.
void OutputGate::count_hand_offs(HostedSession& hosted, std::uint64_t until) {
  if (hosted.gate.hand_offs.empty()) return;
  const Time now = engine_.now();
  std::erase_if(hosted.gate.hand_offs, [&](const HandOff& one) {
    if (one.written_before >= until) return false;
    stats_.hand_off.add(now - (one.grant.expires_at - one.grant.ttl));
    return true;
  });
}

}  // namespace lockd
