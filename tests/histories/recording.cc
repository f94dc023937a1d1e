#include "histories/recording.h"

#include <time.h>

#include <algorithm>

namespace lockd::histories {

Instant now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return Instant{time.tv_sec} * kSecond + time.tv_nsec;
}

Recording::Recording(std::uint64_t seed) { history_.seed = seed; }

std::uint16_t Recording::add_server(const std::string& name, bool auto_release) {
  history_.servers.push_back({name, auto_release});
  return static_cast<std::uint16_t>(history_.servers.size() - 1);
}

std::uint32_t Recording::add_key(const std::string& name) {
  history_.keys.push_back(name);
  return static_cast<std::uint32_t>(history_.keys.size() - 1);
}

Recording::Scribe& Recording::add_scribe() {
  const std::lock_guard lock(mutex_);
  return scribes_.emplace_back(count_);
}

void Recording::note_fault(std::string_view name, std::uint16_t server, std::uint32_t life,
                           Instant call, Instant ret) {
  auto& names = history_.faults;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) found = names.insert(found, std::string(name));
  if (!is_consequence(name)) ++fault_count_;
  Operation fault{.call = call, .ret = ret, .life = life, .server = server};
  fault.function = Function::fault;
  fault.fault = static_cast<std::uint16_t>(found - names.begin());
  history_.operations.push_back(fault);
}

void Recording::note_heal() {
  const Instant healed = now();
  Operation heal{.call = healed, .ret = healed};
  heal.function = Function::heal;
  history_.operations.push_back(heal);
}

History& Recording::finish() {
  for (Scribe& scribe : scribes_) {
    history_.operations.insert(history_.operations.end(), scribe.operations_.begin(),
                               scribe.operations_.end());
    scribe.operations_ = {};
  }
  return history_;
}

}  // namespace lockd::histories
