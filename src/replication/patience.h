// How long etcd is waited for: as TCP has it, by how long its answers take and how much that
// varies.
//
// After retry_after() the same is asked once more, of another member, and an answer to either
// counts. After deadline() the first is given up.
//
// For the thread that asks.
#pragma once

#include <algorithm>
#include <chrono>

#include "lockd/types.h"

namespace lockd {

class Patience {
 public:
  // It is never shorter than `least`, whatever was seen.
  Patience(Duration least, Duration detect) : least_(least), detect_(detect) {}

  // From now on that is `detect`.
  void use(Duration detect) { detect_ = detect; }

  void answered(Time asked, Time now) {
    last_ = now;
    took(now - asked);
  }
  // When the last answer came; zero before the first.
  Time last() const { return last_; }

  // What an answer takes, smoothed; zero before the first.
  Duration usual() const { return usual_; }
  Duration retry_after() const { return std::max({least_, detect_ / 4, usual_ + 4 * variation_}); }
  Duration deadline() const { return std::max(detect_, 4 * retry_after()); }

 private:
  void took(Duration time) {
    if (usual_ == Duration::zero()) {
      usual_ = time;
      variation_ = time / 2;
      return;
    }
    variation_ += ((time > usual_ ? time - usual_ : usual_ - time) - variation_) / 4;
    usual_ += (time - usual_) / 8;
  }

  const Duration least_;
  Duration detect_;
  Duration usual_{};
  Duration variation_{};
  Time last_{};
};

}  // namespace lockd
