// One possession, from what its clients were told of it: until when it was certainly held, and
// until when it can have been.
//
// A server keeps its word within the interval of each request: a lease that was asked for at `call`
// and confirmed by `ret` ends no earlier than call + ttl and no later than ret + ttl. What is not
// known to have happened makes the certain time shorter and the possible time longer, never the
// other way round: so what is refused here is wrong.
#pragma once

#include <functional>
#include <string_view>

#include "histories/operation.h"
#include "histories/timeline.h"

namespace lockd::histories {

// No fault of a run delays a message, or stops a server, for as long as this. Whoever waited this
// long beside a free slot was forgotten.
inline constexpr Instant kLateMax = 10 * kSecond;

// A key has a capacity, and a hold takes some of it: of a semaphore's limit so many permits, of a
// lock one share of many, or all.
inline constexpr std::int64_t kShares = 1 << 20;
inline std::int64_t takes_of(const Operation& asked) {
  if (asked.kind == Kind::semaphore) return asked.permits;
  return asked.mode == Mode::shared ? 1 : kShares;
}

class Hold {
 public:
  // What is wrong, and the operation that shows it.
  using Complain =
      std::function<void(std::string_view invariant, std::string_view what, const Operation&)>;

  // `told` is the reply that told of the fence; `asked` is when it was first asked for, and
  // `queued_by` when it certainly stood in the queue.
  Hold(const Timeline& timeline, const Operation& told, Instant asked, Instant queued_by);

  // Everything else that was asked about it, in the order of calls.
  void add(const Operation& operation, const Complain& complain);

  Fence fence() const { return told_->fence; }
  std::int64_t takes() const { return takes_of(*told_); }
  const Operation& told() const { return *told_; }
  Instant asked() const { return asked_; }
  Instant queued_by() const { return queued_by_; }
  void queued_by(Instant instant) { queued_by_ = std::min(queued_by_, instant); }

  // It was held until then, at least.
  Instant held_until() const;
  // And so by then, as far as is known by now.
  bool is_certain_at(Instant instant) const { return !over_ && instant < held_until(); }
  // And not after this.
  Instant over_by() const { return over_by_; }

  // It was asked for again, by the same secret, and that may come late: after the last that was
  // told.
  void may_come_late(const Operation& lost);

 private:
  void pass_on(const Operation& operation);
  void believe(const Operation& operation);
  void lease(const Operation& operation);
  void renew(const Operation& operation);
  void let_go(const Operation& operation);
  void expect_alive(const Operation& operation, const Complain& complain) const;
  void expect_not_over(const Operation& operation, const Complain& complain) const;
  std::string_view broken_promise(const Operation& operation) const;

  const Timeline* timeline_;
  const Operation* told_;
  Instant asked_;
  Instant queued_by_;

  Instant proven_ = 0;             // an operation that was called then found it held
  Instant lease_end_ = 0;          // the lease ends no earlier
  Instant doubtful_ = kNever;      // from then on a release or an admin may have been at work
  Instant suspended_ = kNever;     // from then on the server's clock was ahead of ours
  Instant lost_ttl_ = kNever;      // the shortest lease of a renewal whose fate is unknown
  Instant disconnected_ = kNever;  // its connection, the last that asked for it, was taken to end
  Instant over_by_ = 0;
  bool over_ = false;  // somebody was told so
};

}  // namespace lockd::histories
