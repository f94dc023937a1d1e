// What is wrong with etcd, told to people: each thing once, until etcd answers again.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "ha/etcd_client.h"
#include "journal/report.h"

namespace lockd {

class Trouble {
 public:
  explicit Trouble(Log log) : log_(std::move(log)) {}

  // Of a call without which it cannot go on.
  void take(const etcd::Answer& answer) {
    if (answer.status == etcd::Answer::Status::done) {
      if (!told_.empty()) log_("etcd: answers again");
      told_.clear();
    } else if (told_.size() < kToldMax && told_.insert(answer.message).second) {
      log_("etcd: " + answer.message);
    }
  }

 private:
  static constexpr std::size_t kToldMax = 8;

  const Log log_;
  std::set<std::string> told_;
};

}  // namespace lockd
