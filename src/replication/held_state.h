// What is held, as a journal or a chain told it, to be told again: it serves nobody.
//
// An engine that follows and never leads. Its time stands at zero, so that deadlines come out as
// they went in, by whichever clock they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "lockd/clock.h"
#include "lockd/engine.h"
#include "lockd/journal.h"

namespace lockd {

// What there was to tell.
struct StateSummary {
  std::uint64_t holds = 0;
  std::uint64_t of_semaphores = 0;  // among them
  Fence largest_fence = 0;          // that may have been granted

  void add(const Event& event) {
    largest_fence = std::max(largest_fence, event.fence);
    if (event.type != Event::Type::granted) return;
    ++holds;
    of_semaphores += event.kind == Kind::semaphore ? 1 : 0;
  }
};

class HeldState final : private Journal {
 public:
  using Take = std::function<void(std::span<const Event>)>;

  // Whoever is told of it grants no fence up to and including `floor`.
  explicit HeldState(Fence floor)
      : engine_({.shards = 1,
                 .fence_floor = floor,
                 .clock = &clock_,
                 .journal = this,
                 .sweeper = false}) {}

  // False when it contradicts what came before.
  bool apply(const Event& event) { return source_->apply(event); }

  // Tells of the next few hundred keys; and at the end of what the fences have come to, which
  // covers those of keys that nobody holds. False when that was all.
  bool describe_some(bool from_start, const Take& take) {
    take_ = &take;
    return source_->describe_some(from_start);
  }

 private:
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override {
    (*take_)(events);
    return 0;
  }
  void commit(Position) override {}
  Position durable() const noexcept override { return 0; }
  State state() const noexcept override { return State::following; }
  void attach(Source* source) override { source_ = source; }

  ManualClock clock_{Time{}};
  Source* source_ = nullptr;
  const Take* take_ = nullptr;
  Engine engine_;  // last: it uses all of the above
};

}  // namespace lockd
