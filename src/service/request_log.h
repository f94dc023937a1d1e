// RequestLog: one session's requests in the log, at debug: each when it ends, with its outcome and
// duration.
//
// While debug is off it costs a branch a request, and a pointer a session. Belongs to its session.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockd/engine.h"
#include "lockd/types.h"
#include "server/log.h"
#include "service/call.h"

namespace lockd {

class RequestLog {
 public:
  RequestLog(const Engine& engine, SessionId client) : engine_(engine), client_(client) {}

  // The name must contain no secret.
  void begin(std::string_view request) {
    if (logs(LogLevel::debug)) under_way_ = std::make_unique<Request>(request, engine_.now());
  }
  bool is_under_way() const { return under_way_ != nullptr; }
  // What the request turns out to be about. Precondition: one is under way.
  void note_subject(const Call& call);
  void note(Fence fence) {
    if (is_under_way()) under_way_->fence = fence;
  }
  void note_outcome(std::string_view outcome) {
    if (is_under_way()) under_way_->outcome = outcome;
  }
  // Logs the request that is under way, if any. `outcome` counts if no other was noted.
  void end(std::string_view outcome) {
    if (is_under_way()) write(outcome);
  }

 private:
  struct Request {
    Request(std::string_view name, Time now) : name(name), since(now) {}

    std::string name;
    std::string subject{};
    std::string outcome{};
    Fence fence = 0;
    Time since;
  };

  void write(std::string_view outcome);

  const Engine& engine_;
  const SessionId client_;
  std::unique_ptr<Request> under_way_;
};

}  // namespace lockd
