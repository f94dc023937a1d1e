#include "lockctl/run/held_set.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/stoppable_wait.h"
#include "lockctl/api/json.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/run/child_process.h"

namespace lockd::cli {

using client::BootClock;
using namespace std::chrono_literals;

namespace {

constexpr const char* kHeldNoMore = "the server says that it is held no more";

}  // namespace

BootClock::time_point SetGrant::certain_until() const { return client::later(sent_at, ttl); }

SetGrant set_grant_of(const ApiReply& reply, BootClock::time_point sent_at) {
  const auto grant = parse_json(reply.body, "the server");
  const SetGrant made{
      .fence = number_of(grant, "token"), .ttl = ms_of(grant, "ttl_ms"), .sent_at = sent_at};
  if (made.fence != 0 && made.ttl > Duration::zero()) return made;
  throw Failure(kExitProtocol, "the server's grant has no fence, or no lease");
}

std::optional<SetGrant> renew_set(Api& api, const SetTerms& terms, Fence fence) {
  Parameters body = terms.naming;
  body.push_back({"token", fence});
  const auto sent_at = BootClock::now();
  const ApiReply reply = api.post("/v1/renew", body);
  if (!reply.is_ok() && refusal_of(reply).code == kExitConflict) return std::nullopt;
  require(reply);
  return set_grant_of(reply, sent_at);
}

HeldSet::HeldSet(std::unique_ptr<Api> api, SetTerms terms, const SetGrant& grant,
                 const EventFd& lost)
    : terms_(std::move(terms)),
      grant_(grant),
      lost_(lost),
      certainty_(grant.certain_until()),
      api_(std::move(api)),
      keeper_([this](const std::stop_token& stop) { keep(stop); }),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

HeldSet::~HeldSet() {
  if (!is_released_) release();
}

bool HeldSet::is_held() const { return certainty_.lasts(BootClock::now()); }

std::optional<std::string> HeldSet::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

std::string HeldSet::name() const {
  std::string names;
  for (const std::string& key : terms_.keys) {
    names += (names.empty() ? "" : ", ") + in_quotes(key);
  }
  return "the lock on " + names;
}

std::vector<std::string> HeldSet::variables() const {
  std::string keys;
  for (const std::string& key : terms_.keys) keys += (keys.empty() ? "" : "\n") + key;
  return {"LOCKD_KEYS=" + keys, "LOCKD_FENCE=" + std::to_string(grant_.fence),
          "LOCKD_EXPIRES_AT=" + std::to_string(unix_seconds_of(certainty_.until()))};
}

std::optional<std::string> HeldSet::release() {
  is_released_ = true;
  const bool was_held = is_held();
  // If nobody answers, a renewal that hangs is for nothing any more, and the lease has run out.
  const bool is_answered = was_held || was_refused_;
  if (!is_answered) api_->interrupt();
  keeper_ = {};
  watcher_ = {};
  if (!is_answered) return loss().value_or("the lease ran out");
  certainty_.end(BootClock::now());
  const bool had_all = give_back();
  if (!was_held) return loss();
  return had_all ? std::nullopt : std::optional<std::string>(kHeldNoMore);
}

bool HeldSet::give_back() {
  Parameters body = terms_.naming;
  body.push_back({"token", grant_.fence});
  try {
    const ApiReply reply = api_->post("/v1/release", body);
    require(reply);
    const auto told = parse_json(reply.body, "the server");
    return array_of(told, "not_held").empty();
  } catch (const Failure&) {
    // Whoever cannot be told, or makes no sense, has the lease to go by.
    return true;
  }
}

// At a third of the lease, so that there is time to ask again.
void HeldSet::keep(const std::stop_token& stop) {
  constexpr auto kBeforeAskingAgain = 200ms;
  Time due = client::later(grant_.sent_at, grant_.ttl / 3);
  while (pause_until(due, stop)) {
    try {
      const auto renewal = renew_set(*api_, terms_, grant_.fence);
      was_refused_ = !renewal;
      if (!renewal) return lose(kHeldNoMore);
      certainty_.extend(BootClock::now(), renewal->certain_until());
      due = client::later(renewal->sent_at, renewal->ttl / 3);
    } catch (const Failure&) {
      due = BootClock::now() + kBeforeAskingAgain;
    }
  }
}

void HeldSet::watch(const std::stop_token& stop) {
  while (is_held()) {
    if (!pause_until(certainty_.until(), stop)) return;
  }
  lose("the lease ran out without a confirmed renewal");
}

void HeldSet::lose(const std::string& how) {
  certainty_.end(BootClock::now());
  {
    const std::lock_guard lock(mutex_);
    if (!loss_) loss_ = how;
  }
  lost_.set();
}

// In naps: the clock that a thread sleeps by stands still in a suspended machine.
bool HeldSet::pause_until(Time time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && BootClock::now() < time) {
    const Duration nap = std::min<Duration>(time - BootClock::now(), 1s);
    woken_.wait_for(lock, stop, nap, [] { return false; });
  }
  return !stop.stop_requested();
}

}  // namespace lockd::cli
