// HeldState rebuilds the holds from the events of a journal or a chain, and describes them as
// events again. It is an engine that follows and never leads. Its clock stays at zero, so deadlines
// are returned as they were applied, whatever their clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "lockd/clock.h"
#include "lockd/engine.h"
#include "lockd/journal.h"

namespace lockd {

// Counts described events.
struct StateSummary {
  std::uint64_t holds = 0;
  std::uint64_t semaphore_holds = 0;  // included in `holds`
  Fence largest_fence = 0;            // largest that may have been granted

  void add(const Event& event) {
    largest_fence = std::max(largest_fence, event.fence);
    if (event.type != Event::Type::granted) return;
    ++holds;
    semaphore_holds += event.kind == Kind::semaphore ? 1 : 0;
  }
};

class HeldState final : private Journal {
 public:
  using Sink = std::function<void(std::span<const Event>)>;

  // The described state forbids fences up to and including `floor`.
  explicit HeldState(Fence floor)
      : engine_({.shards = 1,
                 .fence_floor = floor,
                 .clock = &clock_,
                 .journal = this,
                 .sweeper = false}) {}

  // False if the event contradicts the ones before.
  bool apply(const Event& event) { return source_->apply(event); }

  // Describes the next few hundred keys; at the end the fence floor, which covers keys without
  // holders. Returns false at the end.
  bool describe_some(bool from_start, const Sink& sink) {
    sink_ = &sink;
    return source_->describe_some(from_start);
  }

 private:
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override {
    (*sink_)(events);
    return 0;
  }
  void commit(Position) override {}
  Position durable() const noexcept override { return 0; }
  State state() const noexcept override { return State::following; }
  void attach(Source* source) override { source_ = source; }

  ManualClock clock_{Time{}};
  Source* source_ = nullptr;
  const Sink* sink_ = nullptr;
  Engine engine_;  // last: it uses the members above
};

}  // namespace lockd
