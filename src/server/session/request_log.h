// What the log has of one session's requests at debug: each when it ends, with its outcome and how
// long it took.
//
// While debug is off it costs a branch a request, and a pointer a session. Belongs to its session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockd/requests.h"
#include "lockd/types.h"
#include "server/log.h"

namespace lockd {

class RequestLog {
 public:
  // Nothing of it may be secret.
  void begin(std::string_view request, std::string_view key, Time now) {
    if (logs(LogLevel::debug)) under_way_ = std::make_unique<Request>(request, key, now);
  }
  bool is_under_way() const { return under_way_ != nullptr; }
  // What the request under way turns out to be about, and what it comes to.
  void about(std::string_view key) {
    if (is_under_way()) under_way_->key = key;
  }
  void about(Fence fence) {
    if (is_under_way()) under_way_->fence = fence;
  }
  void about(const HoldId& hold) {
    about(hold.keys.front().key);
    about(hold.fence);
  }
  void comes_to(std::string_view outcome) {
    if (is_under_way()) under_way_->outcome = outcome;
  }
  // `outcome` is for one of which nothing else was said. Precondition: one is under way.
  void end(SessionId client, std::string_view outcome, Time now);

 private:
  struct Request {
    Request(std::string_view what, std::string_view which, Time now)
        : request(what), key(which), since(now) {}

    std::string request;
    std::string key;
    std::string outcome{};
    Fence fence = 0;
    Time since;
  };

  std::unique_ptr<Request> under_way_;
};

}  // namespace lockd
