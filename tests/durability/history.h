// What clients were told of the grants they got, over all lives of a server, and whether it can all
// be true.
//
// A fence says which of two grants of a key came first, so nothing has to be searched for. All
// times are those of one steady clock, and of each grant only what is certain is used: a history
// that is refused is wrong, whatever the machine was doing meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockd/types.h"

namespace lockd {

using Instant = std::chrono::steady_clock::time_point;

struct ToldGrant {
  Fence fence = 0;
  Instant asked{};  // when the request was sent
  Instant told{};   // when the reply was there
  // It was held until then, if the server keeps its word: its release was sent, or the shortest
  // lease that it can have had was over.
  Instant held_until{};
};

class History {
 public:
  // A key has the same limit every time.
  void add(const std::string& key, std::uint32_t limit, const ToldGrant& grant);
  std::size_t size() const { return size_; }

  // What cannot be true; empty if everything can:
  //   - of two grants of a key the later has the larger fence;
  //   - nobody is granted a key while as many as its limit hold it.
  std::string contradiction() const;

 private:
  struct Key {
    std::uint32_t limit = 1;
    std::vector<ToldGrant> grants;
  };

  static std::string contradiction(Key key);

  std::map<std::string, Key> keys_;
  std::size_t size_ = 0;
};

}  // namespace lockd
