// What a node of a cluster has done, counted. Written by the journal's thread, read by any.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockd/histogram.h"

namespace lockd {

class Count {
 public:
  void add(std::uint64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
  operator std::uint64_t() const { return value_.load(std::memory_order_relaxed); }  // NOLINT

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Tally {
  Count batches_followed;
  Count batches_repeated;  // that came twice from the watch
  Count watches;           // opened
  Count campaigns;
  Count terms;    // begun: the campaign was won, and the chain goes on from here
  Count appends;  // acknowledged by etcd
  Count append_bytes;
  SharedHistogram append_time;  // from the first sending to the answer
  Count resends;                // of batches whose fate was unknown
  Count resolved;               // of those, found to have happened before
  Count lapses;                 // answers that came too late to be certain of leading
  Count beats;
  Count accounts;  // of everything, so that older batches could go
  Count compactions;
};

}  // namespace lockd
