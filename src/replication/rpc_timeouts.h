// RpcTimeouts computes the timeouts of calls to etcd from the latency of its answers and the
// variation of that, as TCP computes its retransmission timeout.
//
// After retry_after() the caller sends the request again, to another member; an answer to either
// counts. After deadline() the first request has failed.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "lockd/types.h"

namespace lockd {

class RpcTimeouts {
 public:
  // retry_after() is at least `least`.
  RpcTimeouts(Duration least, Duration detect) : least_(least), detect_(detect) {}

  // Sets the detect of a new leader.
  void use(Duration detect) { detect_ = detect; }

  void record(Time asked, Time now) {
    last_ = now;
    add_sample(now - asked);
  }
  // The time of the last answer; zero before the first.
  Time last_answer() const { return last_; }

  // The smoothed latency; zero before the first answer.
  Duration usual() const { return usual_; }
  Duration retry_after() const { return std::max({least_, detect_ / 4, usual_ + 4 * variation_}); }
  Duration deadline() const { return std::max(detect_, 4 * retry_after()); }

 private:
  void add_sample(Duration time) {
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
