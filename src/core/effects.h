// What an operation caused, beyond its answer.
#pragma once

#include <vector>

#include "lockd/journal.h"
#include "lockd/observer.h"
#include "lockd/requests.h"

namespace lockd {

struct Effects {
  std::vector<Event> events;            // for the journal, in order
  std::vector<Settled> settled;         // waits that ended; to be told once the events are durable
  std::vector<Occurrence> occurrences;  // for onlookers, in order; none while nobody looks
  Time earliest = Time::never();        // the earliest deadline that was set

  void clear() {
    events.clear();
    settled.clear();
    occurrences.clear();
    earliest = Time::never();
  }
};

}  // namespace lockd
