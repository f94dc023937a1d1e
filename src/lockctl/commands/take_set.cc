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

// One wait for several keys. The server may cut it short, stop, or be gone for a while: then it is
// asked again until the wait is over, under the same name, which gets its own grant back.
class SetWait {
 public:
  SetWait(const Invocation& invocation, Api& api, const SetTerms& terms)
      : arguments_(invocation.arguments),
        api_(api),
        terms_(terms),
        wait_(wait_of(invocation.arguments)) {}

  // Nothing when somebody else has a part of it. Throws Failure.
  std::optional<SetGrant> run(const std::stop_token& stop) {
    for (;;) {
      const Duration left = this->left();
      const auto sent_at = BootClock::now();
      const std::optional<ApiReply> reply = ask(left, stop);
      if (reply && reply->is_ok()) {
        if (auto grant = confirmed(set_grant_of(*reply, sent_at))) return grant;
      } else if (reply && refusal_of(*reply).is_conflict()) {
        const bool was_cut = refusal_of(*reply).error == "wait_timeout";
        if (!was_cut || this->left() <= std::chrono::milliseconds(1)) return std::nullopt;
      } else if (reply && refusal_of(*reply).code != kExitTemporary) {
        require(*reply);
      } else if (left <= Duration::zero()) {
        throw failure_ ? *failure_ : Failure(kExitTemporary, refusal_of(*reply).line);
      } else {
        tell_once(failure_ ? failure_->what() : refusal_of(*reply).line);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    }
  }

 private:
  Duration left() const { return whole_if_endless(wait_ - (BootClock::now() - start_)); }

  // Nothing when there was no answer.
  std::optional<ApiReply> ask(Duration left, const std::stop_token& stop) {
    Parameters body = terms_.naming;
    if (const auto ttl = arguments_.seconds("ttl")) body.push_back({"ttl_ms", ms_of(*ttl)});
    if (const auto note = arguments_.text("note")) body.push_back({"note", std::string(*note)});
    body.push_back({"wait_ms", ms_of(left)});
    failure_.reset();
    try {
      return api_.post("/v1/acquire", body, left);
    } catch (const Failure& failure) {
      if (failure.code() != kExitUnavailable || stop.stop_requested()) throw;
      failure_.emplace(failure);
      return std::nullopt;
    }
  }

  // A grant that was under way for long is renewed before anybody counts on it.
  std::optional<SetGrant> confirmed(const SetGrant& grant) {
    if (BootClock::now() < client::later(grant.sent_at, grant.ttl / 3)) return grant;
    return renew_set(api_, terms_, grant.fence);
  }

  static std::uint64_t ms_of(Duration time) {
    return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count());
  }

  void tell_once(const std::string& line) {
    if (!std::exchange(told_, true)) say(line + "; asking again");
  }

  const Arguments& arguments_;
  Api& api_;
  const SetTerms& terms_;
  const Duration wait_;
  const BootClock::time_point start_ = BootClock::now();
  std::optional<Failure> failure_;  // why there was no answer
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
      grant = SetWait(invocation, *api, terms).run(stopper.token());
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
