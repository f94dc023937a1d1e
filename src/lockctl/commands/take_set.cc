// How `run --all` comes by its keys: over the API, under a name that nobody else has.
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "client/stoppable_wait.h"
#include "lockctl/commands/commands.h"
#include "lockctl/commands/take_lock.h"
#include "lockctl/output/failure.h"
#include "lockctl/run/held_set.h"

namespace lockd::cli {
namespace {

using client::BootClock;

constexpr Duration kWayBack = std::chrono::milliseconds(100);

// Worth asking again for: nothing was done, or the server has cut the wait short.
bool may_pass(const Refusal& refusal) {
  return refusal.error == "wait_timeout" || refusal.error == "draining" ||
         refusal.error == "not_leader";
}

// One wait for several keys. The server may cut it short, stop, or be gone for a while: then it is
// asked again until the wait is over, under the same name, which gets its own grant back.
class SetWait {
 public:
  SetWait(const Arguments& arguments, Api& api, const SetTerms& terms)
      : arguments_(arguments), api_(api), terms_(terms), wait_(wait_of(arguments)) {}

  // Nothing when somebody else has a part of it. Throws Failure.
  std::optional<SetGrant> run(const std::stop_token& stop) {
    for (;;) {
      const auto sent_at = BootClock::now();
      const ApiReply reply = ask(stop);
      if (reply.is_ok()) {
        if (auto grant = confirmed(set_grant_of(reply, sent_at))) return grant;
        continue;
      }
      const Refusal refusal = refusal_of(reply);
      // What is left of a wait that was not cut short is what was rounded, and the way back.
      const bool was_cut = refusal.error == "wait_timeout";
      const bool asks_again = may_pass(refusal) && left() > (was_cut ? kWayBack : Duration::zero());
      if (!asks_again && refusal.is_conflict()) return std::nullopt;
      if (!asks_again) throw Failure(refusal.code, refusal.line);
      was_cut ? tell(refusal.line) : pause(refusal.line);
    }
  }

 private:
  Duration left() const { return whole_if_endless(wait_ - (BootClock::now() - start_)); }

  ApiReply ask(const std::stop_token& stop) {
    for (;;) {
      const Duration wait = left();
      try {
        return api_.post("/v1/acquire", body_of(wait), wait);
      } catch (const Failure& failure) {
        const bool is_over = stop.stop_requested() || left() == Duration::zero();
        if (is_over || failure.code() != kExitUnavailable) throw;
        pause(failure.what());
      }
    }
  }

  Parameters body_of(Duration wait) const {
    const auto ms_of = [](Duration time) {
      return static_cast<std::uint64_t>(
          std::chrono::floor<std::chrono::milliseconds>(time).count());
    };
    Parameters body = terms_.naming;
    if (const auto ttl = arguments_.seconds("ttl")) body.push_back({"ttl_ms", ms_of(*ttl)});
    if (const auto note = arguments_.text("note")) body.push_back({"note", std::string(*note)});
    body.push_back({"wait_ms", ms_of(wait)});
    return body;
  }

  // A grant that was under way for long is renewed before anybody counts on it.
  std::optional<SetGrant> confirmed(const SetGrant& grant) {
    if (BootClock::now() < client::later(grant.sent_at, grant.ttl / 3)) return grant;
    return renew_set(api_, terms_, grant.fence);
  }

  // Says once why it is asked again.
  void tell(const std::string& why) {
    if (!std::exchange(told_, true)) say(why + "; asking again");
  }
  void pause(const std::string& why) {
    tell(why);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  const Arguments& arguments_;
  Api& api_;
  const SetTerms& terms_;
  const Duration wait_;
  const BootClock::time_point start_ = BootClock::now();
  bool told_ = false;
};

}  // namespace

TakenSet take_set(const Invocation& invocation, const SignalSource& signals, const EventFd& lost) {
  const Arguments& arguments = invocation.arguments;
  if (arguments.has("name")) {
    throw Failure(kExitUsage, "--name: not with --all, whose holder has a name of its own");
  }
  SetTerms terms{.keys = keys_of(arguments)};
  terms.naming = {named_keys(terms.keys, share_of(arguments)), {"holder", random_holder()}};
  auto api = api_of_all(invocation, terms.keys);
  SignalStop stopper(signals);
  std::optional<SetGrant> grant;
  {
    const std::stop_callback interrupt(stopper.token(), [&] { api->interrupt(); });
    try {
      grant = SetWait(arguments, *api, terms).run(stopper.token());
    } catch (const Failure&) {
      if (const int signal = stopper.finish(); signal != 0) return {.status = kExitSignal + signal};
      throw;
    }
  }
  if (const int signal = stopper.finish(); signal != 0) {
    // It came just behind the grant, and the API that brought it is interrupted.
    if (grant) HeldSet(api_of_all(invocation, terms.keys), terms, *grant, lost).release();
    return {.status = kExitSignal + signal};
  }
  if (!grant) {
    const auto code = arguments.whole("conflict-exit-code");
    return {.status = static_cast<int>(code.value_or(kExitConflict))};
  }
  if (arguments.has("verbose")) say("got all, fence " + std::to_string(grant->fence));
  return {.set = std::make_unique<HeldSet>(std::move(api), std::move(terms), *grant, lost)};
}

}  // namespace lockd::cli
