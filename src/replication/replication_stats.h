// What a node of a cluster has done, counted. Written by the journal's thread, read by any.
#pragma once

#include "base/counter.h"
#include "lockd/histogram.h"

namespace lockd {

struct ReplicationStats {
  Counter batches_followed;
  Counter batches_repeated;  // that came twice from the watch
  Counter watches;           // opened
  Counter campaigns;
  Counter terms;    // begun: the campaign was won, and the chain goes on from here
  Counter appends;  // acknowledged by etcd
  Counter append_bytes;
  SharedHistogram append_time;  // from the first sending to the answer
  Counter resends;              // of batches whose fate was unknown
  Counter resolved;             // of those, found to have happened before
  Counter lapses;               // answers that came too late to be certain of leading
  Counter heartbeats;
  Counter snapshots;  // of everything, so that older batches could go
  Counter compactions;
};

}  // namespace lockd
