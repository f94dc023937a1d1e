// Whatever a server says is understood or refused, and what comes out keeps its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client/claim.h"
#include "client/reply.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace lockd::client;
  using namespace std::chrono_literals;
  const std::string_view line(reinterpret_cast<const char*>(bytes), size);
  if (is_signal(line)) {
    const Signal signal = signal_of(line);
    require(signal.channel.find(' ') == std::string::npos);
    require(signal.channel.size() + signal.payload.size() <= size);
    return 0;
  }
  const Status status = status_of(line);
  require(status.detail.size() < 300);
  if (const auto grant = grant_of(line, 30s)) {
    require(status && grant->lease >= 1s && grant->lease <= 30s);
    require(!grant->token.empty() && grant->token.find(' ') == std::string::npos);
  }
  if (const auto renewal = renewal_of(line, 30s)) {
    require(status && renewal->remaining >= 1s && renewal->remaining <= 30s);
  }
  if (count_of(line)) require(bool(status));
  if (const auto stats = stats_of(line)) require(status && stats->starts_with('{'));
  if (const auto answer = api_answer_of(line)) {
    require(status && answer->status >= 100 && answer->status < 600 && !answer->json.empty());
  }
  // Several keys, whose answers are JSON.
  const Status set = api_status_of(line);
  require(set.outcome != Outcome::ok || static_cast<bool>(status));
  require(set.detail.size() < 4096 && set.detail.find('\n') == std::string::npos);
  static const auto claim =
      *SetClaim::make({.keys = std::vector<lockd::KeyItem>{"a", "b"}, .lease = 30s}, {});
  require(!claim->gone_in(line).empty());
  if (const auto grant = claim->grant_of(line)) {
    require(set && grant->fence != 0 && grant->lease >= 1s && grant->lease <= 30s);
  }
  if (is_event(line)) require(event_of(line).size() < size);
  if (is_loss(line)) require(loss_of(line).token.find(' ') == std::string::npos);
  return 0;
}
