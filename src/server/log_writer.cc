#include "server/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/details/log_msg.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace lockd {
namespace {

using namespace std::chrono_literals;

// How many lines may wait to be written.
constexpr std::size_t kLinesWaitingMax = 2048;

// The thread takes no signals: other threads wait for those.
std::thread start_without_signals(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread started(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

LogWriter::LogWriter(const std::string& pattern,
                     std::function<std::string(const Dropped&)> describe)
    : describe_(std::move(describe)),
      formatter_(pattern, spdlog::pattern_time_type::utc),
      thread_(start_without_signals([this] { run(); })) {}

LogWriter::~LogWriter() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LogWriter::write(Level level, std::string text) {
  const auto now = spdlog::log_clock::now();
  {
    MutexLock lock(mutex_);
    const bool is_detail = level <= spdlog::level::debug;
    (is_detail ? details_ : others_).push_back({++last_number_, now, level, std::move(text)});
    if (details_.size() + others_.size() > kLinesWaitingMax) {
      auto& oldest = details_.empty() ? others_ : details_;
      ++(details_.empty() ? unreported_.info_and_above : unreported_.debug_and_trace);
      ++dropped_;
      oldest.pop_front();
    }
  }
  changed_.notify_one();
}

std::uint64_t LogWriter::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

void LogWriter::run() {
  while (true) {
    std::optional<Line> line;
    {
      MutexLock lock(mutex_);
      while (!(line = next_line()) && !is_ending_) {
        const bool owes_report = unreported_.debug_and_trace + unreported_.info_and_above > 0;
        owes_report ? void(changed_.wait_until(mutex_, next_report_)) : changed_.wait(mutex_);
      }
    }
    if (!line) return;
    write_out(*line);
  }
}

// The report comes before the lines that are left: they are younger than those that were dropped.
std::optional<LogWriter::Line> LogWriter::next_line() {
  const bool has_dropped = unreported_.debug_and_trace + unreported_.info_and_above > 0;
  if (has_dropped && (is_ending_ || Clock::now() >= next_report_)) {
    next_report_ = Clock::now() + 1s;
    return Line{.at = spdlog::log_clock::now(),
                .level = spdlog::level::warn,
                .text = describe_(std::exchange(unreported_, {}))};
  }
  const bool is_detail =
      !details_.empty() && (others_.empty() || details_.front().number < others_.front().number);
  auto& lines = is_detail ? details_ : others_;
  if (lines.empty()) return {};
  Line line = std::move(lines.front());
  lines.pop_front();
  return line;
}

// Waits for room before it writes: a pipe that nobody reads must not keep the process from ending.
void LogWriter::write_out(const Line& line) {
  spdlog::memory_buf_t bytes;
  formatter_.format({line.at, {}, "lockd", line.level, line.text}, bytes);
  std::string_view left(bytes.data(), bytes.size());
  while (!left.empty() && await_room()) {
    // Where there is room at all, there is for so much.
    const ssize_t size =
        ::write(STDERR_FILENO, left.data(), std::min<std::size_t>(left.size(), PIPE_BUF));
    if (size < 0 && errno != EINTR && errno != EAGAIN) return;  // no reader is left
    left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
}

bool LogWriter::await_room() const {
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  while (true) {
    const bool waits = Clock::now().time_since_epoch() < gives_up_at_.load();
    if (::poll(&room, 1, waits ? 50 : 0) != 0) return true;
    if (!waits) return false;
  }
}

}  // namespace lockd
