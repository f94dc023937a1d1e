#include "lockctl/run/held.h"

#include <chrono>
#include <ctime>

#include "lockctl/output/output.h"
#include "lockd/client/outcome.h"

namespace lockd::cli {

std::optional<std::string> HeldKey::loss() const {
  const auto loss = lock_.loss();
  return loss ? std::optional(client::describe(*loss)) : std::nullopt;
}

std::string HeldKey::name() const { return "the lock on " + in_quotes(lock_.key()); }

std::vector<std::string> HeldKey::variables() const {
  return {"LOCKD_KEY=" + lock_.key(), "LOCKD_TOKEN=" + lock_.token(),
          "LOCKD_FENCE=" + std::to_string(lock_.fence()),
          "LOCKD_EXPIRES_AT=" + std::to_string(unix_seconds_of(lock_.expires_at()))};
}

std::optional<std::string> HeldKey::release() {
  const client::Status released = lock_.release();
  const bool was_lost =
      released.outcome == client::Outcome::lost || released.outcome == client::Outcome::unsure;
  return was_lost ? std::optional(client::describe(released)) : std::nullopt;
}

std::int64_t unix_seconds_of(client::BootClock::time_point time) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto wall = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  return std::chrono::floor<std::chrono::seconds>(wall + (time - client::BootClock::now())).count();
}

}  // namespace lockd::cli
