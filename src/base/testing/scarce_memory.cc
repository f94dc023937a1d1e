#include "base/testing/scarce_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>

namespace lockd {
namespace {

enum Ending : int { finished, broken, never_ran_out };
constexpr int kTerminated = 40;

// Of this process: constant-initialized, as the first allocations come before main().
std::atomic<bool> counting{false};
std::atomic<std::uint64_t> left{0};  // 0: none fails

bool runs_out() { return counting && left != 0 && --left == 0; }

void* take(std::size_t size, std::size_t alignment = 0) {
  if (runs_out()) return nullptr;
  if (alignment == 0) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t size, std::size_t alignment = 0) {
  void* const memory = take(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// What is broken is told by the exit status; the words of a thousand ends help nobody.
[[noreturn]] void run_child(std::uint64_t nth, const std::function<bool()>& story) {
  std::set_terminate([] { ::_exit(kTerminated); });
  left = nth;
  const bool sound = story();
  ::_exit(!sound ? broken : ScarceMemory::ran_out() ? finished : never_ran_out);
}

}  // namespace

ScarceMemory::ScarceMemory() { counting = true; }
ScarceMemory::~ScarceMemory() { counting = false; }
bool ScarceMemory::ran_out() { return left == 0; }

std::uint64_t fail_each_allocation(const std::function<bool()>& story,
                                   const std::function<void()>& afterwards) {
  std::uint64_t terminated = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    const pid_t child = ::fork();
    if (child == 0) run_child(nth, story);
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
      ADD_FAILURE() << "allocation " << nth << ": the process died, wait status " << status;
      return terminated;
    }
    const int ending = WEXITSTATUS(status);
    EXPECT_NE(ending, broken) << "allocation " << nth << ": it went on with what was broken";
    if (ending == kTerminated) ++terminated;
    afterwards();
    if (testing::Test::HasFailure() || ending == never_ran_out) return terminated;
  }
}

}  // namespace lockd

void* operator new(std::size_t size) { return lockd::take_or_throw(size); }
void* operator new[](std::size_t size) { return lockd::take_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return lockd::take(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return lockd::take(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return lockd::take_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return lockd::take_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
