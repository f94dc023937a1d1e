// Computes the timeouts of calls to etcd from the latency of its answers, as TCP does. Used by one
// thread. After retry_after() the caller sends the request again, to another member; an answer to
// either counts. After deadline() the first request has failed.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockd/types.h"

namespace lockd {

class RpcTimeouts {
 public:
  // retry_after() is at least `least`.
  RpcTimeouts(Duration least, Duration detect) : least_(least), detect_(detect) {}

  // The detect of the last leader: the time after which a silent leader is replaced.
  void set_detect(Duration detect) { detect_ = detect; }
  Duration detect() const { return detect_; }

  void record(Time sent, Time now) {
    last_answer_ = now;
    const Duration time = now - sent;
    const bool is_first = usual_ == Duration::zero();
    const Duration error = time > usual_ ? time - usual_ : usual_ - time;
    variation_ = is_first ? time / 2 : variation_ + (error - variation_) / 4;
    usual_ = is_first ? time : usual_ + (time - usual_) / 8;
  }
  // For callbacks, which do not know the time: the next turn() records the last answer.
  void answered(Time sent) { answered_ = sent; }
  void turn(Time now) {
    if (answered_ != Time{}) record(std::exchange(answered_, {}), now);
  }

  // Zero before the first answer, as is the smoothed latency.
  Time last_answer() const { return last_answer_; }
  Duration usual() const { return usual_; }
  Duration retry_after() const { return std::max({least_, detect_ / 4, usual_ + 4 * variation_}); }
  Duration deadline() const { return std::max(detect_, 4 * retry_after()); }

 private:
  const Duration least_;
  Duration detect_;
  Duration usual_{};
  Duration variation_{};
  Time last_answer_{};
  Time answered_{};
};

}  // namespace lockd
