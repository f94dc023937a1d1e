// Finds the latest of what happened in several shards, the latest first.
//
// A block of a shard's history is copied under its lock and read without it. Of what matches, the
// latest are kept: so no more is remembered than is asked for, however much there is. Used by one
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
  // `query` outlives it.
  explicit HistoryReading(const HistoryQuery& query);

  // What was read rests on the turn's position.
  void read(Shard& shard, std::uint32_t number, detail::Turn& turn);
  void tell(const std::function<void(const KeyEvent&)>& visit);

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
  std::optional<SessionId> holder_session_;  // that query_.holder names
  std::vector<Found> found_;                 // a heap, the earliest on top
};

}  // namespace lockd
