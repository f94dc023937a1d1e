// What one worker counts. Written by its thread only, read by any: an increment is a plain add.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "lockd/histogram.h"
#include "protocol/http/routes.h"
#include "protocol/line/line_request.h"

namespace lockd {

// The statuses that HTTP replies have, each with its counter; anything else is the last.
inline constexpr auto kCountedStatuses =
    std::to_array<int>({200, 204, 304, 400, 401, 403, 404, 405, 408, 409, 413, 417, 429, 431, 503});

struct WorkerStats {
  Counter line_requests;
  SharedHistogram hand_off;  // from a grant to a waiter to when its reply may leave
  Counter signals_published;
  Counter signals_delivered;
  Counter connections_accepted;
  Counter connections_refused;
  Counter proof_timeouts;  // connections closed, for want of proof in time
  Counter crowded_out;     // and to make room for others
  Counter connections_cut_for_memory;
  Counter line_auth_failures;
  Counter http_auth_failures;
  std::array<Counter, kViolationCodes> violations;  // by code
  std::array<std::array<Counter, kCountedStatuses.size() + 1>, kHttpCalls> http_requests;

  void count_http(HttpCall call, int status) {
    std::size_t i = 0;
    while (i < kCountedStatuses.size() && kCountedStatuses[i] != status) ++i;
    http_requests[static_cast<std::size_t>(call)][i].add();
  }
};

}  // namespace lockd
