#include "etcd/grpc_log.h"

#include <grpc/support/log.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace lockd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kSilence{1};
constexpr std::size_t kDifferentMax = 16;

class GrpcLog {
 public:
  void send_to(Log log) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    log_ = std::move(log);
  }

  void take(const std::string& complaint) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const Clock::time_point now = Clock::now();
    std::erase_if(said_, [&](const auto& said) { return now - said.second >= kSilence; });
    if (said_.size() >= kDifferentMax || !said_.emplace(complaint, now).second) return;
    if (log_) log_("etcd: " + complaint);
  }

 private:
  Mutex mutex_;
  Log log_ GUARDED_BY(mutex_);
  std::map<std::string, Clock::time_point> said_ GUARDED_BY(mutex_);
};

// Never destroyed: gRPC's threads may outlive everything here.
GrpcLog& grpc_log() {
  static GrpcLog& log = *new GrpcLog;
  return log;
}

}  // namespace

void take_grpc_log(Log log) {
  grpc_log().send_to(std::move(log));
  gpr_set_log_function([](gpr_log_func_args* args) {
    if (args->severity == GPR_LOG_SEVERITY_ERROR) grpc_log().take(args->message);
  });
}

}  // namespace lockd
