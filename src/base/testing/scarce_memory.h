// Memory that runs out. Replaces operator new in the program that is linked with it, and runs what
// must stand that in processes of its own.
#pragma once

#include <cstdint>
#include <functional>

namespace lockd {

// While one lives, allocations of its process are counted, and the one whose turn it is fails.
class ScarceMemory {
 public:
  ScarceMemory();
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

  // Whether one has failed.
  static bool ran_out();
};

// Runs `story` in a child again and again: at first its first allocation under ScarceMemory fails,
// then its second, until none is left to fail. The story returns false when what it sees is broken.
// `afterwards` looks at each in the parent, where nothing fails.
//
// A child may die by std::terminate, when memory has run out, and by nothing else. Returns how many
// did: it fails the test when a child ends otherwise.
std::uint64_t fail_each_allocation(
    const std::function<bool()>& story, const std::function<void()>& afterwards = [] {});

}  // namespace lockd
