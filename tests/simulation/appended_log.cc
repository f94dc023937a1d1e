#include "simulation/appended_log.h"

#include <utility>

#include "crash/violation.h"
#include "simulation/promises.h"

namespace lockd::simulation {
namespace {

using crash::violated;

}  // namespace

void AppendedLog::appended(Position begin, Position end, std::span<const Event> events,
                           bool is_description, Time) {
  Append append{.begin = begin, .end = end};
  for (const Event& event : events) {
    append.events.push_back({event, std::string(event.key), crash::owner_of(event.holder)});
  }
  if (is_description) {
    crash::Holds before = settled_;
    for (const Append& each : unsettled_) apply(before, each);
    crash::Holds after = before;
    apply(after, append);
    const std::string difference = after.differs_from(before);
    if (!difference.empty()) violated("snapshot-tells-truth", difference);
  } else {
    check_sets_are_whole(append);
  }
  unsettled_.push_back(std::move(append));
}

void AppendedLog::check_sets_are_whole(const Append& append) const {
  for (const OwnEvent& own : append.events) {
    const Event& granted = own.event;
    const bool is_of_set = granted.type == Event::Type::granted && !granted.holder.is_secret() &&
                           own.owner.find(kSetHolder) != std::string::npos;
    if (!is_of_set) continue;
    for (const Append& before : unsettled_) {
      for (const OwnEvent& other : before.events) {
        const bool is_same_set = other.event.type == Event::Type::granted &&
                                 other.owner == own.owner && other.event.fence == granted.fence;
        if (is_same_set && (other.key != own.key || other.event.kind != granted.kind)) {
          violated("durable-as-one", own.owner + " fence " + std::to_string(granted.fence) +
                                         " was granted in two appends");
        }
      }
    }
  }
}

void AppendedLog::apply(crash::Holds& holds, const Append& append) {
  for (const OwnEvent& own : append.events) {
    Event event = own.event;
    event.key = own.key;
    event.holder = crash::holder_of(own.owner);
    holds.apply(event);
  }
}

void AppendedLog::settle(Position position) {
  while (!unsettled_.empty() && unsettled_.front().end <= position) {
    apply(settled_, unsettled_.front());
    settled_to_ = unsettled_.front().end;
    unsettled_.pop_front();
  }
}

void AppendedLog::recovered(Position position, const crash::Holds& holds) {
  if (position < settled_to_) {
    violated("acknowledged-in-force", "the log ends at " + std::to_string(position) + ", but " +
                                          std::to_string(settled_to_) + " had been told");
  }
  settle(position);
  if (!unsettled_.empty() && unsettled_.front().begin < position) {
    violated("all-or-nothing", "the log ends at " + std::to_string(position) +
                                   ", inside of an append from " +
                                   std::to_string(unsettled_.front().begin) + " to " +
                                   std::to_string(unsettled_.front().end));
  }
  unsettled_.clear();
  const std::string difference = holds.differs_from(settled_);
  if (!difference.empty()) violated("replay-equals", difference);
}

}  // namespace lockd::simulation
