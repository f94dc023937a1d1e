// What cannot be true of a history.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockd::histories {

// The invariants, by the names under which histories that must fail are kept:
//   I1   never more holders than the limit
//   I2   fences rise
//   I3   no hold ends early, and none that is over comes back
//   I4   first come, first served
//   I5   nobody waits, or is turned away, while there is room
//   I6   one outcome per ticket, one fence per request
//   I8   what was acknowledged survives the server
//   I11  after a failure of its storage a server promises nothing
//   I12  once the faults are over everybody is served
//   I15  several keys in one step: all or none, under one fence
//   I16  whoever asks again is given what it certainly holds
struct Finding {
  std::string invariant;
  std::string key;
  std::string what;
  std::vector<std::uint32_t> lines;  // of the file
};

}  // namespace lockd::histories
