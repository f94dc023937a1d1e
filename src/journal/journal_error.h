// What the journal tells people: a log for what they should know, an error for what stops it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "journal/storage.h"

namespace lockd {

using Log = std::function<void(std::string_view)>;

// "DIR/journal-0000000000000001.log"
std::string path_of(const Storage& storage, std::uint64_t segment);

// Throws JournalError: "DIR/FILE, byte OFFSET: WHAT; " and what the operator can do.
[[noreturn]] void refuse_damage(const Storage& storage, std::uint64_t segment, std::uint64_t offset,
                                const std::string& what);
// Throws JournalError: "DIR/FILE: OPERATION: REASON".
[[noreturn]] void refuse_fault(const std::string& path, const Fault& fault);
inline void check(const std::string& path, const Fault& fault) {
  if (fault) refuse_fault(path, fault);
}

// Says every few seconds how far something long has come.
class Progress {
 public:
  Progress(const Log& log, std::string doing, std::uint64_t total);

  void advance(std::uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const Log& log_;
  const std::string doing_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::uint64_t looked_at_ = 0;
  Clock::time_point next_;
};

}  // namespace lockd
