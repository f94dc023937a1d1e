#include "server/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <memory>
#include <vector>

#include "base/json_text.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// How many lines may wait to be written.
constexpr std::size_t kLinesWaitingMax = 2048;
// How long an end of the process waits for who reads them.
constexpr std::chrono::milliseconds kLastLinesWithin = 1s;

std::atomic<bool> as_json{false};

// Waits for room before it writes: a pipe that nobody reads must not keep the process from ending.
class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void give_up_at(SteadyClock::time_point when) { gives_up_at_ = when.time_since_epoch(); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view left(line.data(), line.size());
    while (!left.empty() && await_room()) {
      // Where there is room at all, there is for so much.
      const ssize_t size =
          ::write(STDERR_FILENO, left.data(), std::min<std::size_t>(left.size(), PIPE_BUF));
      if (size < 0 && errno != EINTR && errno != EAGAIN) return;  // nobody will ever read it
      left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
  }
  void flush_() override {}

  bool await_room() const {
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    while (::poll(&room, 1, 50) == 0) {
      if (SteadyClock::now().time_since_epoch() >= gives_up_at_.load()) return false;
    }
    return true;
  }

  std::atomic<SteadyClock::duration> gives_up_at_{SteadyClock::duration::max()};
};

std::shared_ptr<StderrSink> sink;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace: return spdlog::level::trace;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Its thread takes no signals: those are for whoever waits for them.
void start_thread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  spdlog::init_thread_pool(kLinesWaitingMax, 1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// `,"port":6388` or ` port=6388`
void append(std::string& line, const LogField& field) {
  if (as_json) {
    line += ',';
    append_json_string(line, field.name);
    line += ':';
  } else {
    line += ' ';
    line += field.name;
    line += '=';
  }
  if (field.is_text) {
    append_json_string(line, field.value);
  } else {
    line += field.value;
  }
}

// Filled before main() begins, and never changed then.
std::vector<PeerEvent*>& peer_events() {
  static std::vector<PeerEvent*> all;
  return all;
}

}  // namespace

void set_up_log(LogLevel level, LogFormat format) {
  as_json = format == LogFormat::json;
  start_thread();
  sink = std::make_shared<StderrSink>();
  auto logger = std::make_shared<spdlog::async_logger>(
      "lockd", sink, spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern(as_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                              : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                      spdlog::pattern_time_type::utc);
  logger->set_level(level_of(level));
  spdlog::set_default_logger(std::move(logger));
  detail::lowest_logged = static_cast<int>(level);
}

// The thread is joined when the process ends; until then it writes what there is.
void end_log() {
  if (sink != nullptr) sink->give_up_at(SteadyClock::now() + kLastLinesWithin);
}

void log_event(LogLevel level, std::string_view event, const LogFields& fields) {
  if (!logs(level)) return;
  std::string line;
  if (as_json) {
    line += R"("event":)";
    append_json_string(line, event);
  } else {
    line += event;
  }
  for (const LogField& field : fields) append(line, field);
  spdlog::default_logger_raw()->log(level_of(level), line);
}

std::uint64_t log_lines_dropped() {
  const auto thread = spdlog::thread_pool();
  return thread == nullptr ? 0 : thread->overrun_counter();
}

bool may_log(std::chrono::steady_clock::time_point& next,
             std::chrono::steady_clock::time_point now) {
  if (now < next) return false;
  next = now + std::chrono::minutes(1);
  return true;
}

PeerEvent::PeerEvent(LogLevel level, std::string_view event) : level_(level), event_(event) {
  peer_events().push_back(this);
}

bool PeerEvent::admits(Clock::time_point now) {
  if (!logs(level_)) return false;
  MutexLock lock(mutex_);
  begin_second(now);
  return ++seen_ <= kLinesPerSecond;
}

// What the last one left out is told first.
void PeerEvent::begin_second(Clock::time_point now) {
  if (now < second_ends_) return;
  if (seen_ > kLinesPerSecond) {
    log({{"and_more", seen_ - kLinesPerSecond}});
  }
  second_ends_ = now + 1s;
  seen_ = 0;
}

void PeerEvent::log_left_out(Clock::time_point now) {
  for (PeerEvent* event : peer_events()) {
    MutexLock lock(event->mutex_);
    event->begin_second(now);
  }
}

}  // namespace lockd
