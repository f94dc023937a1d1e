#include "client/renewal.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/deadline.h"
#include "client/reply.h"
#include "client/request_lines.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPauseMin = 50ms;
constexpr Duration kPauseMax = 1s;

// Whether the answer to a renewal says that there is nothing left to renew.
bool says_gone(Outcome outcome) {
  return outcome == Outcome::refused || outcome == Outcome::lease_expired ||
         outcome == Outcome::not_enqueued;
}

bool ends_conversation(Outcome outcome) {
  return outcome == Outcome::garbled || outcome == Outcome::draining ||
         outcome == Outcome::unauthorized;
}

}  // namespace

Renewal::Renewal(std::shared_ptr<Hold> hold, std::unique_ptr<Conversation> conversation)
    : hold_(std::move(hold)),
      conversation_(std::move(conversation)),
      renew_at_(due(hold_->grant.sent_at, hold_->grant.lease)) {}

std::optional<Status> Renewal::advance(Time now) {
  if (!hold_->certainty.lasts(now)) return give_up();
  if (conversation_ == nullptr) {
    if (now < retry_at_) return {};
    reconnect(now);
  }
  conversation_->advance(now);
  if (const auto reply = conversation_->take_reply()) {
    if (auto loss = judge(*reply, now)) return loss;
  }
  if (conversation_->is_closed()) {
    try_again_later(now);
  } else if (conversation_->is_ready() && !is_asking() && now >= renew_at_) {
    ask(now);
  }
  return {};
}

void Renewal::reconnect(Time now) {
  const auto& [endpoint, addresses] = hold_->where;
  const Time deadline = later(now, std::min(endpoint->options.connect_timeout, patience()));
  conversation_ = std::make_unique<Conversation>(endpoint, addresses, now,
                                                 std::min(deadline, hold_->certainty.until()));
}

// After a break: at once, then ever less often.
void Renewal::try_again_later(Time now) {
  conversation_.reset();
  asked_at_.reset();
  renew_at_ = now;
  retry_at_ = later(now, pause_);
  pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
}

void Renewal::ask(Time now) {
  // The lease is named, since there are servers that forget what was granted.
  const auto lines = renew_lines(hold_->line_hold(), hold_->grant.lease);
  conversation_->give_up_unacknowledged_after(patience());
  asked_at_ = now;
  conversation_->ask(*lines);
}

std::optional<Status> Renewal::judge(std::string_view reply, Time now) {
  const Time asked_at = *std::exchange(asked_at_, std::nullopt);
  const auto renewal = renewal_of(reply, hold_->grant.lease);
  if (renewal) {
    if (!hold_->certainty.extend(now, later(asked_at, renewal->remaining))) return give_up();
    renew_at_ = due(asked_at, renewal->remaining);
    pause_ = {};
    return {};
  }
  if (says_gone(renewal.outcome)) {
    hold_->certainty.end(now);
    return Status{Outcome::lost, "the server says that " + hold_->terms.key + " is held no more"};
  }
  if (ends_conversation(renewal.outcome)) {
    conversation_->close(renewal);
  } else {
    // It cannot tell now: it does not lead, for one.
    pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
    renew_at_ = later(now, pause_);
  }
  return {};
}

// The server may keep it a little longer than we believed in it. Nobody needs it any more.
Status Renewal::give_up() {
  if (conversation_ != nullptr && conversation_->is_ready()) {
    conversation_->ask(*release_lines(hold_->line_hold()));
    conversation_->close({Outcome::unsure});
  }
  return {Outcome::unsure,
          "the lease of " + hold_->terms.key + " ran out without a confirmed renewal"};
}

pollfd Renewal::interest() const {
  return conversation_ == nullptr ? pollfd{.fd = -1} : conversation_->interest();
}

Renewal::Time Renewal::deadline() const {
  Time next = retry_at_;
  if (conversation_ != nullptr) {
    if (conversation_->is_closed()) return {};  // it broke before it came to us: now
    const bool asks_next = conversation_->is_ready() && !is_asking();
    next = asks_next ? renew_at_ : conversation_->deadline();
  }
  return std::min(next, hold_->certainty.until());
}

// For what must not take most of the lease.
Duration Renewal::patience() const { return std::max<Duration>(hold_->grant.lease / 4, 1s); }

}  // namespace lockd::client
