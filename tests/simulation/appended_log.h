// Everything that was appended to the journal, in order: what is held at any place that a crash may
// leave the log at.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "crash/holds.h"
#include "crash/witnessed_journal.h"
#include "lockd/journal.h"

namespace lockd::simulation {

class AppendedLog final : public crash::Scribe {
 public:
  // Throws crash::Violation when a description tells of something else than was appended before it,
  // and when the grants of one set are in two appends: a crash between them leaves a part.
  void appended(Position begin, Position end, std::span<const Event> events, bool is_description,
                Time now) override;

  // A log that ends at `position` was recovered: what was behind it is lost. Throws
  // crash::Violation unless that is the end of an append, and what was recovered is what is held
  // there.
  void recovered(Position position, const crash::Holds& holds);

  // No crash undoes what is before `position` any more.
  void settle(Position position);

 private:
  struct OwnEvent {
    Event event;  // its views are of the two below
    std::string key;
    std::string owner;
  };
  struct Append {
    Position begin = 0;
    Position end = 0;
    std::vector<OwnEvent> events{};
  };

  void check_sets_are_whole(const Append& append) const;
  static void apply(crash::Holds& holds, const Append& append);

  crash::Holds settled_;  // as of the last append that was settled
  Position settled_to_ = 0;
  std::deque<Append> unsettled_;  // what came since
};

}  // namespace lockd::simulation
