// One line an event, on stderr, as text or as JSON. Values are escaped: a key cannot forge a line.
//
// Any thread may log. Secrets and tokens never go in.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "server/settings/options.h"

namespace lockd {

struct LogField {
  std::string_view name;
  std::string value;
};

// Once, before anything is logged.
void set_up_log(LogLevel level, LogFormat format);

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
bool logs(LogLevel level);

// Once a minute at most: what any peer can cause must not fill the log.
bool may_log(std::chrono::steady_clock::time_point& next,
             std::chrono::steady_clock::time_point now);

}  // namespace lockd
