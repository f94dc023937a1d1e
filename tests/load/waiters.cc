#include "load/waiters.h"

#include <gtest/gtest.h>

#include <charconv>
#include <string>

namespace lockd {
namespace {

// 0 when nobody holds or awaits it.
std::size_t waiters_in(std::string_view stats, std::string_view key) {
  constexpr std::string_view kWaiters = "\"waiters\":";
  const std::size_t entry = stats.find("{\"key\":\"" + std::string(key) + "\",\"owner_conn_id\":");
  if (entry == std::string_view::npos) return 0;
  const std::string_view digits = stats.substr(stats.find(kWaiters, entry) + kWaiters.size());
  std::size_t count = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return count;
}

}  // namespace

bool await_waiters(LineClient& observer, std::string_view key, std::size_t count) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string stats;
  do {
    stats = observer.ask(request("stats", "", ""));
    if (stats.starts_with("ok {") && waiters_in(stats, key) == count) return true;
  } while (LineClient::Clock::now() < deadline);
  ADD_FAILURE() << count << " should wait for " << key << ": " << stats;
  return false;
}

}  // namespace lockd
