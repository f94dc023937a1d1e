#include "crash/log_prefixes.h"

#include <iterator>
#include <utility>

#include "crash/violation.h"

namespace lockd::crash {
LogPrefixes::LogPrefixes() { prefixes_[0].holds = std::make_shared<Holds>(); }

void LogPrefixes::appended(Position begin, Position end, std::span<const Event> events,
                           bool is_description, Time now) {
  const Holds& before = *prefixes_.rbegin()->second.holds;
  auto after = std::make_shared<Holds>(before);
  for (const Event& event : events) after->apply(event);
  if (is_description) {
    const std::string difference = after->differs_from(before);
    if (!difference.empty()) violated("snapshot-tells-truth", difference);
  }
  prefixes_[end] = {begin, std::move(after), now};
}

const LogPrefixes::Prefix* LogPrefixes::at(Position position) const {
  const auto next = prefixes_.upper_bound(position);
  if (next == prefixes_.begin()) return nullptr;
  if (next != prefixes_.end() && next->second.begin < position) return nullptr;
  return &std::prev(next)->second;
}

void LogPrefixes::cut(Position position) {
  prefixes_.erase(prefixes_.upper_bound(position), prefixes_.end());
}

void LogPrefixes::forget_before(Position position) {
  const auto next = prefixes_.upper_bound(position);
  if (next != prefixes_.begin()) prefixes_.erase(prefixes_.begin(), std::prev(next));
}

}  // namespace lockd::crash
