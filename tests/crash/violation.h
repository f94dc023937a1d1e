// What is promised over a crash, by name. A check that fails throws the name and what breaks it;
// whoever made the crash adds which it was.
//
//   acknowledged-in-force  what was acknowledged is there: grants, leases, ends
//   all-or-nothing         of what was not acknowledged a prefix is there, whole operations only
//   all-or-none            of keys that were granted in one step all are held, or none
//   nothing-invented       and nothing that was never appended
//   replay-equals          what is recovered is what a naive model holds at that position
//   fences-rise            the next fence is larger than every fence that anybody was told
//   owners-keep            a recovered hold is renewed and released by its owner, and by nobody
//   else time-goes-on           engine time is neither less nor more than what has passed
//   recovery-accepts       what a crash can leave is never taken for damage
//   recovery-idempotent    however often recovery is interrupted, the next finds the same
//   snapshot-tells-truth    what the engine describes of itself is what it has appended before
//   log-bounded            a finished snapshot leaves no older segment behind
//   interval-honoured      with an interval, nothing stays unsynced for longer
//   failure-is-final       after a fault nothing more is acknowledged
#pragma once

#include <stdexcept>
#include <string>

namespace lockd::crash {

class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  std::string where{};  // the crash that shows it, outermost first: "1234.5/12.1"
};

[[noreturn]] inline void violated(const std::string& invariant, const std::string& how) {
  throw Violation(invariant + ": " + how);
}

}  // namespace lockd::crash
