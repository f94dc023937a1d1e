#include "histories/key_history.h"

#include <algorithm>
#include <utility>

namespace lockd::histories {
namespace {

Instant end_of(const Operation& operation) {
  return operation.result == Result::info ? operation.gave_up : operation.ret;
}

// Its place is gone by then, whether or not the server has noticed that its client was.
Instant blocks_until(const Operation& operation) {
  if (operation.keys == 1) return 0;
  if (operation.result != Result::info) return operation.ret;
  return sum(operation.gave_up, operation.timeout + kLateMax);
}

KeyHistory::Wait wait_of(const Operation& operation, Instant since) {
  return {.call = since,
          .ret = operation.ret,
          .hold = KeyHistory::kNone,
          .takes = takes_of(operation),
          .is_try = operation.function == Function::acquire && operation.timeout == 0,
          .blocks_until = blocks_until(operation)};
}

}  // namespace

KeyHistory::KeyHistory(const Timeline& timeline, std::string name,
                       std::span<const Operation* const> operations, std::vector<Finding>& findings)
    : timeline_(timeline), name_(std::move(name)), operations_(operations), findings_(findings) {
  for (const Operation* operation : operations_) take(*operation);
  for (const auto& [proc, ticket] : tickets_) abandon(ticket);
  set_barriers();
  std::sort(holds_.begin(), holds_.end(),
            [](const Hold& a, const Hold& b) { return a.fence() < b.fence(); });
}

void KeyHistory::take(const Operation& operation) {
  const std::int64_t capacity = operation.kind == Kind::lock ? kShares : operation.limit;
  capacity_ = std::max(capacity_, capacity);
  switch (operation.function) {
    case Function::acquire: return take_acquire(operation);
    case Function::enqueue: return take_enqueue(operation);
    case Function::wait: return take_wait(operation);
    case Function::renew:
    case Function::release:
    case Function::believe:
    case Function::revoke: return follow_up(operation.fence, operation);
    case Function::stats:
      if (operation.result == Result::ok) stats_.push_back(&operation);
      return;
    default: return;
  }
}

// Null where it has no name, and no secret.
KeyHistory::Asked* KeyHistory::asked_by(const Operation& operation) {
  if (operation.rid == 0) return nullptr;
  return &asked_.try_emplace(operation.rid, Asked{operation.call}).first->second;
}

void KeyHistory::take_acquire(const Operation& operation) {
  Asked* const by = asked_by(operation);
  const Instant asked = by == nullptr ? operation.call : by->first;
  if (operation.result == Result::ok) return grant(operation, asked, operation.ret, asked);
  if (operation.result == Result::not_leader) return;
  waits_.push_back(wait_of(operation, operation.call));
  if (operation.result == Result::timeout) return expect_not_held(operation, by);
  may_hold(operation, end_of(operation));
  if (by == nullptr) return;
  if (by->hold == kNone) return by->lost.push_back(&operation);
  follow_up(holds_[by->hold].fence(), operation);
}

// Whoever asks again has nothing, or is told of something else.
void KeyHistory::expect_not_held(const Operation& operation, const Asked* asked) {
  if (asked == nullptr || asked->hold == kNone) return;
  const Hold& hold = holds_[asked->hold];
  if (hold.fence() == operation.fence || !hold.is_certain_at(operation.ret)) return;
  complain("I16", "was asked for again, and what was certainly held was not given", operation,
           &hold.told());
}

void KeyHistory::take_enqueue(const Operation& operation) {
  Asked* const by = asked_by(operation);
  const Instant asked = by == nullptr ? operation.call : by->first;
  const auto found = tickets_.find(operation.proc);
  if (operation.result == Result::ok || operation.result == Result::queued) {
    if (found != tickets_.end()) abandon(found->second);
    tickets_.insert_or_assign(operation.proc,
                              Ticket{&operation, asked, operation.result == Result::ok});
  }
  if (operation.result == Result::ok) return grant(operation, asked, operation.ret, asked);
  if (operation.result == Result::queued) return expect_not_held(operation, by);
  if (operation.result == Result::not_leader) return;
  waits_.push_back(wait_of(operation, operation.call));
  may_hold(operation, end_of(operation));
  if (by == nullptr) return;
  if (by->hold == kNone) return by->lost.push_back(&operation);
  follow_up(holds_[by->hold].fence(), operation);
}

void KeyHistory::take_wait(const Operation& operation) {
  const auto found = tickets_.find(operation.proc);
  if (found == tickets_.end()) {
    if (operation.result == Result::ok) complain("I6", "was granted without a ticket", operation);
    return;
  }
  const Ticket ticket = found->second;
  tickets_.erase(found);
  const Operation& enqueue = *ticket.enqueue;
  if (ticket.granted) {
    if (operation.result == Result::ok && operation.fence != enqueue.fence) {
      complain("I6", "was granted a second time, and differently", operation, &enqueue);
    } else {
      follow_up(enqueue.fence, operation);
    }
    return;
  }
  if (operation.result == Result::ok) {
    return grant(operation, ticket.asked, enqueue.ret, ticket.asked);
  }
  waits_.push_back(wait_of(operation, enqueue.call));
  if (operation.result == Result::not_held) {
    // Granted, and over before it was awaited.
    unacknowledged_.push_back({enqueue.call, operation.ret, takes_of(enqueue)});
  } else if (operation.result != Result::timeout) {
    may_hold(operation, end_of(operation));
    unacknowledged_.back().from = enqueue.call;
  }
}

void KeyHistory::follow_up(Fence fence, const Operation& operation) {
  if (operation.result == Result::not_leader) return;
  const auto found = by_fence_.find(fence);
  if (found == by_fence_.end()) {
    if (operation.result == Result::ok) complain("I6", "is about a fence of nobody's", operation);
    return;
  }
  Hold& hold = holds_[found->second];
  hold.add(operation,
           [&](std::string_view invariant, std::string_view what, const Operation& shown) {
             complain(invariant, what, shown, &hold.told());
           });
}

void KeyHistory::grant(const Operation& operation, Instant asked, Instant queued_by,
                       Instant line_since) {
  const auto [found, is_new] = by_fence_.try_emplace(operation.fence, holds_.size());
  Asked* const by = asked_by(operation);
  if (by != nullptr) by->first = operation.call;  // what else it is granted it asks for later
  if (is_new) {
    expect_not_held(operation, by);
    waits_.push_back(wait_of(operation, line_since));
    waits_.back().hold = holds_.size();
    Hold& hold = holds_.emplace_back(timeline_, operation, asked, queued_by);
    if (by == nullptr) return;
    by->hold = holds_.size() - 1;
    for (const Operation* lost : std::exchange(by->lost, {})) hold.may_come_late(*lost);
    return;
  }
  const Operation& first = holds_[found->second].told();
  const bool asked_again = operation.rid != 0 && operation.rid == first.rid;
  if (asked_again) {
    if (operation.keys > 1) waits_.push_back(wait_of(operation, operation.call));
    return follow_up(operation.fence, operation);
  }
  complain("I6", "was granted a fence that another has", operation, &first);
}

// It may have been granted until its client was gone, and last for a lease from then.
void KeyHistory::may_hold(const Operation& operation, Instant ended) {
  const Instant until = sum(sum(ended, operation.ttl), kLateMax);
  const Instant armed =
      timeline_.armed_until(operation.server, operation.call, until, operation.ttl);
  unacknowledged_.push_back({operation.call, armed, takes_of(operation)});
}

// Nobody came back for it: its place ends with its connection.
void KeyHistory::abandon(const Ticket& ticket) {
  if (ticket.granted) return;
  const Operation& enqueue = *ticket.enqueue;
  waits_.push_back(wait_of(enqueue, enqueue.call));
  waits_.back().ret = kNever;
  may_hold(enqueue, timeline_.over(enqueue.conn));
}

// When as many wait as can be waiting at all, each of them certainly stands in the queue.
void KeyHistory::set_barriers() {
  std::sort(waits_.begin(), waits_.end(),
            [](const Wait& a, const Wait& b) { return a.call < b.call; });
  std::vector<const Wait*> open;
  std::size_t next = 0;
  for (const Operation* stats : stats_) {
    while (next < waits_.size() && waits_[next].call < stats->ret) open.push_back(&waits_[next++]);
    std::erase_if(open, [&](const Wait* wait) { return wait->ret < stats->call; });
    if (open.size() != stats->waiters) continue;
    for (const Wait* wait : open) {
      if (wait->hold != kNone) holds_[wait->hold].queued_by(stats->ret);
    }
  }
}

void KeyHistory::complain(std::string_view invariant, std::string_view what,
                          const Operation& operation, const Operation* other) {
  Finding finding{.invariant = std::string(invariant),
                  .key = name_,
                  .what = "fence " + std::to_string(operation.fence) + " " + std::string(what),
                  .lines = {}};
  if (other != nullptr) finding.lines.push_back(other->line);
  finding.lines.push_back(operation.line);
  findings_.push_back(std::move(finding));
}

}  // namespace lockd::histories
