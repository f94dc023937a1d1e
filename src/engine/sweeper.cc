#include "engine/sweeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockd {
namespace {

// Short enough to be added to any time.
constexpr Duration kSweepPauseMax = std::chrono::hours(1);

}  // namespace

Sweeper::Sweeper(const Clock& clock, Duration interval_max, std::function<Time()> sweep)
    : clock_(clock),
      interval_max_(interval_max),
      sweep_(std::move(sweep)),
      thread_([this] { run(); }) {}

Sweeper::~Sweeper() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Sweeper::run() {
  while (true) {
    // Set before the sweep reads the deadlines: a thread that sets an earlier one after that read
    // sees this bound and wakes the sweeper.
    const Time latest = clock_.now() + interval_max_;
    wakes_at_ns_.store(latest.ns, std::memory_order_seq_cst);
    const Time next = std::min(sweep_(), latest);
    wakes_at_ns_.store(next.ns, std::memory_order_seq_cst);
    if (!sleep(next)) return;
  }
}

// Returns false if the sweeper must stop.
bool Sweeper::sleep(Time until) {
  MutexLock lock(mutex_);
  if (!woken_ && !stopping_) {
    const Time now = clock_.now();
    if (now < until) changed_.wait_for(mutex_, std::min(until - now, kSweepPauseMax));
  }
  woken_ = false;
  return !stopping_;
}

void Sweeper::wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

}  // namespace lockd
