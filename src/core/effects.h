// What an operation caused, beyond its answer.
#pragma once

#include <vector>

#include "lockd/journal.h"
#include "lockd/observer.h"
#include "lockd/requests.h"

namespace lockd {

struct Effects {
  std::vector<Event> events;             // for the journal, in order
  std::vector<WaitResult> wait_results;  // waits that ended; to be told once the events are durable
  std::vector<KeyEvent> key_events;      // for onlookers, in order; none while nobody looks
  Time earliest = Time::never();         // the earliest deadline that was set

  void clear() {
    events.clear();
    wait_results.clear();
    key_events.clear();
    earliest = Time::never();
  }
};

}  // namespace lockd
