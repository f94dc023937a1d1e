#include "server/log.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/text.h"
#include "server/log_writer.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// How long the process waits at its end until the last lines are read.
constexpr std::chrono::milliseconds kLastLinesWithin = 1s;

std::atomic<bool> as_json{false};

struct StopLogging {
  void operator()(LogWriter* ended) const {
    detail::lowest_logged = detail::kLogsNothing;
    delete ended;
  }
};
// Lives until the process ends, which is when the last lines are written.
std::unique_ptr<LogWriter, StopLogging> writer;

LogWriter::Level level_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace: return spdlog::level::trace;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
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

std::string line_of(std::string_view event, const LogFields& fields) {
  std::string line;
  if (as_json) {
    line += R"("event":)";
    append_json_string(line, event);
  } else {
    line += event;
  }
  for (const LogField& field : fields) append(line, field);
  return escape_hidden(std::move(line));  // in JSON, too, they are parts of strings
}

std::string line_of(const LogWriter::Dropped& dropped) {
  return line_of("log lines dropped", {{"debug_and_trace", dropped.debug_and_trace},
                                       {"info_and_above", dropped.info_and_above}});
}

// Filled before main() begins, and never changed then.
std::vector<PeerEvent*>& peer_events() {
  static std::vector<PeerEvent*> all;
  return all;
}

}  // namespace

void set_up_log(LogLevel level, LogFormat format) {
  as_json = format == LogFormat::json;
  writer.reset(new LogWriter(as_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                                     : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                             [](const LogWriter::Dropped& dropped) { return line_of(dropped); }));
  detail::lowest_logged = static_cast<int>(level);
}

// The thread is joined when the process ends; until then it writes what there is.
void end_log() {
  if (writer != nullptr) writer->give_up_at(LogWriter::Clock::now() + kLastLinesWithin);
}

void log_event(LogLevel level, std::string_view event, const LogFields& fields) {
  if (logs(level)) writer->write(level_of(level), line_of(event, fields));
}

std::uint64_t log_lines_dropped() { return writer == nullptr ? 0 : writer->dropped(); }

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
