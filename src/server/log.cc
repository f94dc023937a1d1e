#include "server/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "base/json_text.h"

namespace lockd {
namespace {

std::atomic<bool> as_json{false};

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

}  // namespace

void set_up_log(LogLevel level, LogFormat format) {
  as_json = format == LogFormat::json;
  auto logger = spdlog::stderr_logger_mt("lockd");
  logger->set_pattern(as_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                              : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                      spdlog::pattern_time_type::utc);
  logger->set_level(level_of(level));
  spdlog::set_default_logger(std::move(logger));
}

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!logs(level)) return;
  std::string line;
  if (as_json) {
    line += R"("event":)";
    append_json_string(line, event);
    for (const LogField& field : fields) {
      line += ',';
      append_json_string(line, field.name);
      line += ':';
      append_json_string(line, field.value);
    }
  } else {
    line += event;
    for (const LogField& field : fields) {
      line += ' ';
      line += field.name;
      line += '=';
      append_json_string(line, field.value);
    }
  }
  spdlog::default_logger_raw()->log(level_of(level), line);
}

bool logs(LogLevel level) { return spdlog::default_logger_raw()->should_log(level_of(level)); }

bool may_log(std::chrono::steady_clock::time_point& next,
             std::chrono::steady_clock::time_point now) {
  if (now < next) return false;
  next = now + std::chrono::minutes(1);
  return true;
}

}  // namespace lockd
