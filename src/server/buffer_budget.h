// How much memory connections have for bytes that wait, over all workers, and whose is to be closed
// when that is too much.
//
// Counted are input that is not read yet, output that is not sent yet, and what a session keeps. A
// connection settles what it has at the end of a turn in which something came or went: one whose
// buffers are empty by then costs nothing. Over the budget, new bodies are refused and the largest
// are closed first: those of a worker stand in classes by powers of two, each worker says which is
// its largest, and the one that has the largest of all closes from it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "server/settings/options.h"

namespace lockd {

// Shared by all workers. Any thread may call anything.
class BufferBudget {
 public:
  explicit BufferBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}  // 0: no limit

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool is_exceeded() const { return bytes_max_ != 0 && bytes() > bytes_max_; }

 private:
  friend class BufferLedger;

  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::size_t> ledgers_{0};
  std::array<std::atomic<std::uint8_t>, kThreadsMax> largest_{};  // class, by ledger
};

// One worker's part, for its thread alone.
class BufferLedger {
 public:
  explicit BufferLedger(BufferBudget& budget) : budget_(budget), number_(budget.ledgers_++) {}
  BufferLedger(const BufferLedger&) = delete;
  BufferLedger& operator=(const BufferLedger&) = delete;

  // One connection's. It must have settled for nothing before it goes.
  class Account {
   public:
    std::size_t bytes() const { return bytes_; }

   private:
    friend class BufferLedger;

    std::size_t bytes_ = 0;
    ListHook<Account> in_class_;
  };

  // It has so much now.
  void settle(Account& account, std::size_t bytes) {
    if (bytes != account.bytes_) change(account, bytes);
  }
  // Who is to be closed next: null while the budget holds, while another worker has larger ones,
  // and when nobody here has kLargeMin.
  Account* largest_over_budget();

  // Nobody is closed for less: it would free too little.
  static constexpr std::size_t kLargeMin = 1024;

 private:
  static constexpr std::size_t kClasses = 33;  // 0: of those that are not large

  // The number of bits of a size.
  static std::size_t class_of(std::size_t bytes);
  void change(Account& account, std::size_t bytes);
  void publish_largest();

  BufferBudget& budget_;
  const std::size_t number_;
  std::array<List<Account, &Account::in_class_>, kClasses> classes_;  // the first stays empty
};

}  // namespace lockd
