// LogWriter writes the log's lines to stderr on a thread of its own.
//
// Any thread may call anything, and none waits for a reader of stderr: a bounded number of lines
// wait. When the queue is full, the oldest line of debug or trace is dropped; only when there is
// none, the oldest line. A line of the log then says how many were dropped, at most once a second.
#pragma once

#include <spdlog/common.h>
#include <spdlog/pattern_formatter.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"

namespace lockd {

class LogWriter {
 public:
  using Clock = std::chrono::steady_clock;
  using Level = spdlog::level::level_enum;
  // How many lines were dropped.
  struct Dropped {
    std::uint64_t debug_and_trace = 0;
    std::uint64_t info_and_above = 0;
  };

  // `describe` makes the text of the line that says how many lines were dropped.
  LogWriter(const std::string& pattern, std::function<std::string(const Dropped&)> describe);
  // Writes what there is.
  ~LogWriter() EXCLUDES(mutex_);

  void write(Level level, std::string text) EXCLUDES(mutex_);
  // From then on nothing waits for a reader.
  void give_up_at(Clock::time_point when) { gives_up_at_ = when.time_since_epoch(); }
  // Since the start.
  std::uint64_t dropped() const EXCLUDES(mutex_);

 private:
  struct Line {
    std::uint64_t number = 0;  // of all that came
    spdlog::log_clock::time_point at{};
    Level level{};
    std::string text{};
  };

  void run() EXCLUDES(mutex_);
  std::optional<Line> next_line() REQUIRES(mutex_);
  void write_out(const Line& line);
  bool await_room() const;

  const std::function<std::string(const Dropped&)> describe_;
  std::atomic<Clock::duration> gives_up_at_{Clock::duration::max()};
  spdlog::pattern_formatter formatter_;  // of the thread

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Line> details_ GUARDED_BY(mutex_);  // of debug and trace
  std::deque<Line> others_ GUARDED_BY(mutex_);
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  Dropped unreported_ GUARDED_BY(mutex_);
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  Clock::time_point next_report_ GUARDED_BY(mutex_){};
  bool is_ending_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace lockd
