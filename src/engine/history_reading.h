// HistoryReading finds the latest matching key events of several shards.
//
// It copies each block of a shard's history under the shard's lock and reads the copy. It keeps at
// most query.events_max matches, so its memory does not depend on the history's size. Used by one
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/history.h"
#include "engine/shard.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {

class HistoryReading {
 public:
  // `query` must outlive the reading.
  explicit HistoryReading(const HistoryQuery& query);

  // The events are durable at turn.position.
  void read(Shard& shard, std::uint32_t number, detail::Turn& turn);
  // Calls `visit` for the matches, the latest first.
  void visit(const std::function<void(const KeyEvent&)>& visitor);

 private:
  struct Found {
    Time at;
    std::uint32_t shard;
    std::uint32_t number;
    std::string bytes;
  };
  static bool is_later(const Found& a, const Found& b);

  void read(Shard& shard, std::uint32_t number, History::Sort sort, detail::Turn& turn);
  Time read_block(std::string_view block, std::uint32_t shard);
  bool matches(const PastEvent& event) const;
  bool matches_holder(const PastEvent& event) const;
  bool may_add(Time at) const;
  void add(Found found);

  const HistoryQuery& query_;
  std::optional<SessionId> holder_session_;  // parsed from query_.holder
  std::vector<Found> found_;                 // a heap with the earliest on top
};

}  // namespace lockd
