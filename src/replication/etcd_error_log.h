// What is wrong with etcd, told to people: each thing once, until etcd answers again.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "replication/etcd_client.h"

namespace lockd {

enum class Severity {
  info,
  warning,  // it goes on all the same, or begins anew
  error,    // this server cannot take part
};
using ClusterLog = std::function<void(Severity, std::string_view)>;

class EtcdErrorLog {
 public:
  explicit EtcdErrorLog(ClusterLog log) : log_(std::move(log)) {}

  // Of a call without which it cannot go on.
  void take(const etcd::Answer& answer) {
    if (answer.status == etcd::Answer::Status::done) {
      if (!told_.empty()) log_(Severity::info, "etcd: answers again");
      told_.clear();
    } else if (told_.size() < kToldMax && told_.insert(answer.message).second) {
      log_(Severity::warning, "etcd: " + answer.message);
    }
  }

 private:
  static constexpr std::size_t kToldMax = 8;

  const ClusterLog log_;
  std::set<std::string> told_;
};

}  // namespace lockd
