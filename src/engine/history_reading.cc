#include "engine/history_reading.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockd {
namespace {

// Parses "tcp:17".
std::optional<SessionId> session_in(std::string_view holder) {
  constexpr std::string_view kPrefix = "tcp:";
  if (!holder.starts_with(kPrefix)) return {};
  SessionId session = 0;
  const char* const end = holder.data() + holder.size();
  const auto [rest, error] = std::from_chars(holder.data() + kPrefix.size(), end, session);
  if (error != std::errc() || rest != end) return {};
  return session;
}

}  // namespace

HistoryReading::HistoryReading(const HistoryQuery& query)
    : query_(query), holder_session_(session_in(query.holder)) {}

void HistoryReading::read(Shard& shard, std::uint32_t number, detail::Turn& turn) {
  for (std::size_t i = 0; i < History::kSorts; ++i) {
    const auto sort = static_cast<History::Sort>(i);
    if (query_.type && History::category(*query_.type) != sort) continue;
    read(shard, number, sort, turn);
  }
}

// Reads from the latest block back, until no earlier block can contain a match.
void HistoryReading::read(Shard& shard, std::uint32_t number, History::Sort sort,
                          detail::Turn& turn) {
  std::string block;
  std::optional<std::uint64_t> next;
  while (true) {
    {
      const Shard::Access table(shard, turn);
      const HistoryRing& ring = table->history().ring(sort);
      if (!next) next = ring.newest();
      if (!ring.copy(*next, block)) return;
    }
    const Time earliest = read_block(block, number);
    if (earliest < query_.since || !may_add(earliest) || *next == 0) return;
    --*next;
  }
}

// Returns the time of the block's first event.
Time HistoryReading::read_block(std::string_view block, std::uint32_t shard) {
  Time earliest = Time::never();
  while (!block.empty()) {
    const PastEvent event(block);
    const KeyEventRecord& facts = event.facts;
    const std::string_view bytes = block.substr(0, facts.size);
    if (earliest == Time::never()) earliest = facts.at;
    if (may_add(facts.at) && matches(event)) {
      add({facts.at, shard, facts.number, std::string(bytes)});
    }
    block.remove_prefix(bytes.size());
  }
  return earliest;
}

bool HistoryReading::matches(const PastEvent& event) const {
  if (event.facts.at < query_.since) return false;
  if (query_.type && event.facts.type != *query_.type) return false;
  if (!query_.key.empty() && event.key != query_.key) return false;
  if (!query_.client.empty() && event.client.name != query_.client) return false;
  if (query_.session != 0 && event.session != query_.session) return false;
  if (!query_.holder.empty() && !matches_holder(event)) return false;
  return query_.prefixes.empty() ||
         std::any_of(query_.prefixes.begin(), query_.prefixes.end(),
                     [&](const std::string& prefix) { return event.key.starts_with(prefix); });
}

bool HistoryReading::matches_holder(const PastEvent& event) const {
  if (event.is_session()) return holder_session_ == event.session;
  return event.holder == query_.holder;
}

bool HistoryReading::is_later(const Found& a, const Found& b) {
  if (a.at != b.at) return a.at > b.at;
  if (a.shard != b.shard) return a.shard > b.shard;
  return static_cast<std::int32_t>(a.number - b.number) > 0;  // the numbers wrap
}

// Whether an event of that time can be among the latest.
bool HistoryReading::may_add(Time at) const {
  return found_.size() < query_.events_max || (!found_.empty() && at >= found_.front().at);
}

void HistoryReading::add(Found found) {
  found_.push_back(std::move(found));
  std::push_heap(found_.begin(), found_.end(), is_later);
  if (found_.size() <= query_.events_max) return;
  std::pop_heap(found_.begin(), found_.end(), is_later);
  found_.pop_back();
}

void HistoryReading::visit(const std::function<void(const KeyEvent&)>& visitor) {
  std::sort_heap(found_.begin(), found_.end(), is_later);
  for (const Found& found : found_) visitor(PastEvent(found.bytes).event());
}

}  // namespace lockd
