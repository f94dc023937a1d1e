#include "histories/hold.h"

#include <algorithm>

namespace lockd::histories {

Hold::Hold(const Timeline& timeline, const Operation& told, Instant asked, Instant queued_by)
    : timeline_(&timeline), told_(&told), asked_(asked), queued_by_(queued_by) {
  lease(told);
  pass_on(told);
}

// It ends with the connection that asked for it last. If that was not told, it may have it or not.
void Hold::pass_on(const Operation& operation) {
  const Instant end = timeline_->disconnected(operation);
  disconnected_ = operation.result == Result::ok ? end : std::min(disconnected_, end);
}

void Hold::may_come_late(const Operation& lost) {
  const Instant until = sum(sum(lost.gave_up, lost.ttl), kLateMax);
  over_by_ = std::max(over_by_, timeline_->armed_until(lost.server, lost.call, until, lost.ttl));
}

// A lease that is confirmed. A renewal that was lost on its way may still arrive, and set another.
void Hold::lease(const Operation& operation) {
  lease_end_ = operation.call + std::min(operation.ttl, lost_ttl_);
  suspended_ = timeline_->next_suspend(operation.server, operation.call);
  over_by_ =
      std::max(over_by_, timeline_->armed_until(operation.server, operation.call,
                                                sum(operation.ret, operation.ttl), operation.ttl));
}

// Whoever believes in it says that it is there. It may have been renewed until then, unseen.
void Hold::believe(const Operation& operation) {
  proven_ = std::max(proven_, operation.ret);
  const Instant until = sum(sum(operation.ret, operation.ttl), kLateMax);
  over_by_ = std::max(
      over_by_, timeline_->armed_until(operation.server, operation.call, until, operation.ttl));
}

void Hold::add(const Operation& operation, const Complain& complain) {
  if (operation.function == Function::believe) return believe(operation);
  // A server whose storage has failed says no to everything, and the line protocol has one word for
  // all of it.
  const Instant failed = timeline_->failed(operation.server, operation.life);
  if (operation.result == Result::not_held && operation.ret >= failed) {
    Operation refused = operation;
    refused.result = Result::storage;
    return add(refused, complain);
  }
  if (operation.result == Result::ok) expect_not_over(operation, complain);
  if (operation.result == Result::not_held) expect_alive(operation, complain);
  if (operation.function == Function::release || operation.function == Function::revoke) {
    let_go(operation);
  } else {
    renew(operation);
  }
  if (operation.function <= Function::wait) pass_on(operation);
  if (operation.result == Result::not_held) {
    over_ = true;
    over_by_ = std::min(over_by_, operation.ret);
  }
}

// What was refused is taken for unknown: it says nothing of the hold.
void Hold::renew(const Operation& operation) {
  if (operation.result == Result::ok) {
    proven_ = std::max(proven_, operation.call);
    lease(operation);
  } else if (operation.result != Result::not_held) {
    lost_ttl_ = std::min(lost_ttl_, operation.ttl);
    lease_end_ = std::min(lease_end_, operation.call + operation.ttl);
    const Instant ended = operation.result == Result::info ? operation.gave_up : operation.ret;
    const Instant until = sum(sum(ended, operation.ttl), kLateMax);
    over_by_ = std::max(
        over_by_, timeline_->armed_until(operation.server, operation.call, until, operation.ttl));
  }
}

void Hold::let_go(const Operation& operation) {
  if (operation.result == Result::ok) {
    proven_ = std::max(proven_, operation.call);
    lease_end_ = operation.call;
    over_ = true;
    over_by_ = std::min(over_by_, operation.ret);
  } else {
    doubtful_ = std::min(doubtful_, operation.call);
  }
}

Instant Hold::held_until() const {
  return std::max(proven_, std::min({lease_end_, doubtful_, suspended_, disconnected_}));
}

void Hold::expect_alive(const Operation& operation, const Complain& complain) const {
  if (over_ || operation.ret >= held_until()) return;
  complain(broken_promise(operation), "was said not to be held while it certainly was", operation);
}

void Hold::expect_not_over(const Operation& operation, const Complain& complain) const {
  if (operation.call <= over_by_) return;
  complain(broken_promise(operation), "came back after it was over", operation);
}

std::string_view Hold::broken_promise(const Operation& operation) const {
  return timeline_->restarted(operation.server, told_->ret, operation.ret) ? "I8" : "I3";
}

}  // namespace lockd::histories
