#include "client/renewal.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/reply.h"
#include "client/request_lines.h"
#include "client/stoppable_wait.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPauseMin = 50ms;
constexpr Duration kPauseMax = 1s;

}  // namespace

Renewal::Renewal(std::shared_ptr<Hold> hold, std::unique_ptr<LineConnection> connection)
    : hold_(std::move(hold)),
      search_(hold_->terms.cluster, hold_->terms.cluster->index_of(*connection)),
      home_{.connection = std::move(connection), .member = search_.here(), .is_proven = true},
      renew_at_(due(hold_->grant.sent_at, hold_->grant.lease)),
      confirmed_at_(hold_->grant.sent_at) {}

std::optional<Status> Renewal::advance(Time now) {
  if (!hold_->certainty.lasts(now)) return give_up();
  for (Talk* const talk : {&home_, &visit_}) {
    if (auto loss = hear(*talk, now)) return loss;
  }
  if (is_away_) {
    visit(now);
  } else if (now >= overdue_at(home_)) {
    go_away({Outcome::no_reply}, now);
  }
  if (is_refused_) {
    hold_->certainty.end(now);
    return hold_->refusal(hold_->last_error());
  }
  Talk& talk = current();
  const bool may_ask = talk.connection != nullptr && talk.connection->is_ready();
  if (may_ask && !talk.asked_at && now >= renew_at_) ask(talk, now);
  return {};
}

std::optional<Status> Renewal::hear(Talk& talk, Time now) {
  if (talk.connection == nullptr) return {};
  talk.connection->advance(now);
  if (const auto loss = talk.connection->take_loss_of(hold_->grant.token)) {
    hold_->certainty.end(now);
    return status_of(*loss);
  }
  if (const auto reply = talk.connection->take_reply()) {
    if (auto loss = judge(talk, *reply, now)) return loss;
  }
  if (talk.connection != nullptr && talk.connection->is_closed()) leave(talk, now);
  return {};
}

std::optional<Status> Renewal::judge(Talk& talk, std::string_view reply, Time now) {
  const Time asked_at = *std::exchange(talk.asked_at, std::nullopt);
  // Home has answered after all, and somebody else has confirmed what was asked later.
  if (asked_at < confirmed_at_) return {};
  const auto renewal = hold_->claim().renewal_of(reply, hold_->grant.lease);
  if (renewal) {
    hold_->is_suspect = false;  // before the end moves, which its owner may wait for
    if (!hold_->certainty.extend(now, later(asked_at, renewal->remaining))) return give_up();
    confirmed_at_ = asked_at;
    talk.is_proven = true;
    hold_->set_last_error({});
    renew_at_ = due(asked_at, renewal->remaining);
    pause_ = {};
    search_.found(talk.member);
    if (&talk == &home_ && std::exchange(is_away_, false)) visit_ = {};
    settle();
    return {};
  }
  if (says_gone(renewal)) {
    hold_->certainty.end(now);
    if (hold_->claim().may_be_left_over()) give_back(talk);
    return Status{Outcome::lost,
                  "the server says that " + hold_->claim().gone_in(reply) + " is held no more"};
  }
  const bool stays = renewal.outcome == Outcome::not_leader && cluster().is_alone();
  hold_->set_last_error(renewal);
  if (moves_on(renewal.outcome) && !stays) {
    talk.connection->close(renewal);
  } else {
    // It cannot tell now.
    doubt(renewal);
    pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
    renew_at_ = later(now, pause_);
  }
  return {};
}

void Renewal::leave(Talk& talk, Time now) {
  const Status why = talk.connection->failure();
  const bool was_current = &talk == &current();
  const bool was_proven = talk.is_proven;
  talk = {};
  if (was_current) return was_proven ? go_away(why, now) : fail(why, now);
  renew_at_ = now;  // home is gone, and a server may release with it
  settle();
}

// Once home is gone, the connection on which the hold was renewed is home.
void Renewal::settle() {
  if (home_.connection != nullptr || !visit_.is_proven) return;
  home_ = std::exchange(visit_, {});
  is_away_ = false;
}

// To the next server, which is asked as soon as it is ready.
void Renewal::go_away(const Status& why, Time now) {
  // Its name may lead elsewhere by now.
  if (why.outcome == Outcome::unreachable) cluster().look_up(search_.here());
  is_away_ = true;
  renew_at_ = now;
  search_.move_on(why, now);
}

void Renewal::fail(const Status& why, Time now) {
  hold_->set_last_error(why);
  go_away(why, now);
  doubt(why);
}

// For a hold that was not renewed after a server may have released it with its connection.
void Renewal::doubt(const Status& why) {
  for (const Talk* const talk : {&home_, &visit_}) {
    if (talk->connection != nullptr && talk->is_proven) return;
  }
  if (hold_->claim().may_be_left_over()) return;  // held by a name
  is_refused_ = why.outcome == Outcome::denied ||
                (why.outcome == Outcome::unauthorized && search_.is_hopeless());
  is_newly_suspect_ |= !hold_->is_suspect.exchange(true) && !is_refused_;
}

void Renewal::visit(Time now) {
  if (visit_.connection != nullptr) {
    if (now < overdue_at(visit_)) return;
    visit_ = {};
    return fail({Outcome::no_reply}, now);
  }
  if (now < search_.not_before()) return;
  const std::size_t member = search_.here();
  // Its answer is what is waited for.
  if (home_.connection != nullptr && home_.member == member) {
    return go_away({Outcome::no_reply}, now);
  }
  const auto addresses = cluster().addresses_of(member);
  if (!addresses) return fail({Outcome::unreachable}, now);
  const Duration left = hold_->certainty.until() - now;
  const auto parts = static_cast<Duration::rep>(cluster().is_alone() ? 1 : cluster().size() + 1);
  const Duration limit = std::min({cluster().options().connect_timeout, patience(), left / parts});
  visit_ = {.connection = std::make_unique<LineConnection>(cluster().member(member), *addresses,
                                                           now, later(now, limit)),
            .member = member};
}

void Renewal::ask(Talk& talk, Time now) {
  talk.connection->give_up_unacknowledged_after(patience());
  talk.asked_at = now;
  talk.connection->ask(hold_->claim().renew_lines(hold_->grant));
}

// The server may keep it a little longer than we believed in it. Nobody needs it any more.
Status Renewal::give_up() {
  for (const Talk* const talk : {&home_, &visit_}) {
    if (talk->connection == nullptr || !talk->connection->is_ready()) continue;
    give_back(*talk);
    talk->connection->close({Outcome::unsure});
  }
  Status loss = hold_->loss_by_clock();
  if (loss.outcome == Outcome::unsure) {
    loss.detail = "the lease of " + hold_->claim().name() + " ran out without a confirmed renewal";
  }
  return loss;
}

// Nobody waits for the answer. Precondition: the connection is ready.
void Renewal::give_back(const Talk& talk) const {
  talk.connection->ask(hold_->claim().release_lines(hold_->grant));
}

std::unique_ptr<LineConnection> Renewal::take_connection() {
  const bool awaits_home = home_.asked_at && *home_.asked_at > confirmed_at_;
  return std::move(awaits_home ? home_.connection : current().connection);
}

std::array<pollfd, 2> Renewal::interests() const {
  const auto of = [](const Talk& talk) {
    return talk.connection == nullptr ? pollfd{.fd = -1} : talk.connection->interest();
  };
  return {of(home_), of(visit_)};
}

Renewal::Time Renewal::deadline() const {
  Time next = std::min(deadline_of(home_), deadline_of(visit_));
  if (is_away_ && visit_.connection == nullptr) next = std::min(next, search_.not_before());
  return std::min(next, hold_->certainty.until());
}

Renewal::Time Renewal::deadline_of(const Talk& talk) const {
  if (talk.connection == nullptr) return kNever;
  if (talk.connection->is_closed()) return {};  // it broke before it came to us: now
  if (!talk.connection->is_ready()) return talk.connection->deadline();
  const bool is_current = is_away_ == (&talk == &visit_);
  if (!is_current) return kNever;
  return talk.asked_at ? overdue_at(talk) : renew_at_;
}

Renewal::Time Renewal::overdue_at(const Talk& talk) const {
  if (cluster().is_alone() || !talk.asked_at) return kNever;
  return later(*talk.asked_at, Duration(hold_->grant.lease) / 4);
}

// For what must not take most of the lease.
Duration Renewal::patience() const { return std::max<Duration>(hold_->grant.lease / 4, 1s); }

}  // namespace lockd::client
