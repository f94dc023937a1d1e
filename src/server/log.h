// One line an event, on stderr, as text or as JSON. Values are escaped: a key cannot forge a line.
//
// Any thread may log, and none waits for it: the log has a thread that writes. While nobody reads
// stderr, lines wait for that, a bounded number of them; then the oldest are dropped, and counted.
// Secrets and tokens never go in. What peers can cause at info and above goes through a PeerEvent.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "server/settings/options.h"

namespace lockd {

struct LogField {
  std::string_view name;
  std::string value;
};

// Once, before anything is logged.
void set_up_log(LogLevel level, LogFormat format);
// The process is about to end, which is when the last lines are written: for a second at most.
void end_log();

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
bool logs(LogLevel level);
// How many lines were dropped since the start.
std::uint64_t log_lines_dropped();

// Once a minute at most: what any peer can cause must not fill the log.
bool may_log(std::chrono::steady_clock::time_point& next,
             std::chrono::steady_clock::time_point now);

// A kind of event that any peer can cause. Of each kind a few lines a second are logged, and after
// that second how many more there were, as `and_more`.
//
// One for each kind, which lives as long as the process. Any thread may call anything.
class PeerEvent {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kLinesPerSecond = 5;

  PeerEvent(LogLevel level, std::string_view event);
  PeerEvent(const PeerEvent&) = delete;
  PeerEvent& operator=(const PeerEvent&) = delete;

  // False when there were enough of them in this second.
  bool log(Clock::time_point now, std::initializer_list<LogField> fields) EXCLUDES(mutex_);
  // Now and then: what was left out of every kind, if its second is over.
  static void log_left_out(Clock::time_point now);

 private:
  void begin_second(Clock::time_point now) REQUIRES(mutex_);

  const LogLevel level_;
  const std::string_view event_;
  Mutex mutex_;
  Clock::time_point second_ends_ GUARDED_BY(mutex_){};
  std::uint64_t seen_ GUARDED_BY(mutex_) = 0;  // in this second
};

}  // namespace lockd
