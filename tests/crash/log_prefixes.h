// Everything that was appended, by position, and what is held at each.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "crash/holds.h"
#include "crash/witnessed_journal.h"
#include "lockd/journal.h"

namespace lockd::crash {

class LogPrefixes final : public Scribe {
 public:
  LogPrefixes();

  // Throws Violation when a description tells of something else than what was appended before it.
  void appended(Position begin, Position end, std::span<const Event> events, bool is_description,
                Time now) override;

  struct Prefix {
    Position begin = 0;  // of its last append
    std::shared_ptr<const Holds> holds;
    Time time{};  // of its last append
  };
  // What a log holds that ends at `position`; null if that is inside of an append.
  const Prefix* at(Position position) const;
  Position end() const { return prefixes_.rbegin()->first; }

  // What was behind `position` is lost.
  void cut(Position position);
  // No log will end before `position` any more.
  void forget_before(Position position);

 private:
  std::map<Position, Prefix> prefixes_;  // by where they end
};

}  // namespace lockd::crash
