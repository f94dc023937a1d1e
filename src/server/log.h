// One line an event, on stderr, as text or as JSON. Values are escaped, with every character that
// could forge, reorder or hide a part of the line where it is shown.
//
// Any thread may log, and none waits for it: the log has a thread that writes. While nobody reads
// stderr, a bounded number of lines wait. When they are too many, lines of debug and trace are
// dropped first, then the oldest, and a line says how many were. Until set_up_log() nothing is
// logged.
//
// Secrets and tokens never go in; a fence may. What peers can cause at info and above goes through
// a PeerEvent; debug and trace are whole, and cost a branch while they are off:
//
//   if (logs(LogLevel::debug)) log_event(LogLevel::debug, "client connected", {{"client_id", id}});
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/settings/options.h"

namespace lockd {

// A text is quoted; a number or a truth is one in JSON, too. A duration's name ends with its unit:
// `held_ms`.
struct LogField {
  LogField(std::string_view field, std::string_view text)
      : name(field), value(text), is_text(true) {}
  template <std::integral Number>
  LogField(std::string_view field, Number number) : name(field), value(std::to_string(number)) {}
  LogField(std::string_view field, bool truth) : name(field), value(truth ? "true" : "false") {}
  LogField(std::string_view field, const char* text) : LogField(field, std::string_view(text)) {}

  std::string_view name;  // outlives it
  std::string value;
  bool is_text = false;
};
using LogFields = std::vector<LogField>;

// Once, before anything is logged.
void set_up_log(LogLevel level, LogFormat format);
// The process is about to end, which is when the last lines are written: for a second at most.
void end_log();

void log_event(LogLevel level, std::string_view event, const LogFields& fields = {});

namespace detail {
inline constexpr int kLogsNothing = 1000;
inline std::atomic<int> lowest_logged{kLogsNothing};
}  // namespace detail

inline bool logs(LogLevel level) {
  return static_cast<int>(level) >= detail::lowest_logged.load(std::memory_order_relaxed);
}

// How many lines were dropped since the start.
std::uint64_t log_lines_dropped();

// Once a minute at most: what any peer can cause must not fill the log.
bool may_log(std::chrono::steady_clock::time_point& next,
             std::chrono::steady_clock::time_point now);

// A kind of event that any peer can cause. Of each kind a few lines a second are logged, and after
// that second how many more there were, as `and_more`.
//
//   if (wrong_secret.admits(now)) wrong_secret.log({{"peer", peer}});
//
// One for each kind, which lives as long as the process. Any thread may call anything.
class PeerEvent {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kLinesPerSecond = 5;

  PeerEvent(LogLevel level, std::string_view event);
  PeerEvent(const PeerEvent&) = delete;
  PeerEvent& operator=(const PeerEvent&) = delete;

  // Counts one. False when there were enough of them in this second: then it is not to be logged,
  // nor its fields to be made.
  bool admits(Clock::time_point now) EXCLUDES(mutex_);
  void log(const LogFields& fields) const { log_event(level_, event_, fields); }
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
