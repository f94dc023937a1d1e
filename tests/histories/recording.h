// A history in the making: what many threads write down, each for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "histories/operation.h"

namespace lockd::histories {

// CLOCK_BOOTTIME.
Instant now();

class Recording {
 public:
  explicit Recording(std::uint64_t seed);

  // Before anything is recorded.
  std::uint16_t add_server(const std::string& name, bool auto_release);
  std::uint32_t add_key(const std::string& name);
  const std::string& key(std::uint32_t key) const { return history_.keys[key]; }

  // One thread's notes; they stay where they are.
  class Scribe {
   public:
    explicit Scribe(std::atomic<std::size_t>& count) : count_(count) {}
    void note(const Operation& operation) {
      operations_.push_back(operation);
      if (operation.function <= Function::stats) ++count_;
    }

   private:
    friend class Recording;
    std::vector<Operation> operations_;
    std::atomic<std::size_t>& count_;
  };
  Scribe& add_scribe();

  std::uint32_t new_proc() { return ++last_proc_; }
  std::uint64_t new_conn() { return ++last_conn_; }
  std::uint64_t new_rid() { return ++last_rid_; }
  std::size_t operations() const { return count_; }

  // For one thread.
  void note_fault(std::string_view name, std::uint16_t server, std::uint32_t life, Instant call,
                  Instant ret);
  void note_heal();
  std::size_t faults() const { return fault_count_; }

  // When nobody writes any more.
  History& finish();

 private:
  History history_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint32_t> last_proc_{0};
  std::atomic<std::uint64_t> last_conn_{0};
  std::atomic<std::uint64_t> last_rid_{0};
  std::size_t fault_count_ = 0;
  std::mutex mutex_;
  std::deque<Scribe> scribes_;
};

}  // namespace lockd::histories
