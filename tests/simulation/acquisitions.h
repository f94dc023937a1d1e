// What was asked for by secrets that clients chose: whoever asks again by one gets what is there.
//
// A secret is its client's, but others use it too, as a process does that has several connections:
// so one asks on an older connection for what a later one has. What is known of a hold is with the
// promises; here is by whom, when and how it was asked for, and what of that may come late.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/promises.h"

namespace lockd::simulation {

struct Acquisition {
  std::string secret{};  // 16 hex digits
  std::uint32_t client = 0;
  Fence largest_told = 0;              // of the key, when it was first asked for
  Duration ttl_min = Duration::max();  // of all that asked; which was executed last is not known
  Duration ttl_max = Duration::zero();
  std::vector<Terms> terms{};                // that it was asked for on
  std::vector<std::uint64_t> connections{};  // likewise
  std::uint32_t on_their_way = 0;            // requests by it that are not answered
  bool may_come_late = false;  // one was not heard of again: it may be executed at any time
  bool is_anew = true;         // there is nothing: whoever asks by it is granted something new
  bool is_retired = false;     // nobody may ask by it again
  Time asked_at{};

  // Whether the hold's own lease, or when that ends, may be another than was told last.
  bool may_be_moved() const { return on_their_way > 0 || may_come_late || ttl_min != ttl_max; }
  std::uint64_t newest() const {
    return connections.empty() ? 0 : *std::ranges::max_element(connections);
  }
  bool was_asked_on(std::uint64_t connection) const {
    return std::ranges::find(connections, connection) != connections.end();
  }
  bool was_asked_otherwise(const Terms& than) const {
    return std::ranges::any_of(terms, [&](const Terms& each) { return each != than; });
  }
};

class Acquisitions {
 public:
  explicit Acquisitions(std::uint32_t keys) : keys_(keys), of_keys_(2 * keys) {}

  Acquisition& add(Key key, std::string secret, std::uint32_t client) {
    return of_keys_[index(key)].emplace_back(
        Acquisition{.secret = std::move(secret), .client = client});
  }
  // By a secret, or a token, which ends with it; null if no client chose that.
  Acquisition* find(Key key, std::string_view secret);
  // The last few of a key that may be asked for again.
  std::vector<Acquisition*> recent(Key key);
  // Whether what that connection was granted can be another's by now, that came later and is there.
  template <typename IsThere>
  bool may_have_passed_on(Key key, std::uint64_t connection, IsThere is_there) const {
    return std::ranges::any_of(of_keys_[index(key)], [&](const Acquisition& acquisition) {
      return acquisition.was_asked_on(connection) &&
             std::ranges::any_of(acquisition.connections, [&](std::uint64_t other) {
               return other > connection && is_there(other);
             });
    });
  }
  // Forgets what was asked for long ago, and is held by nobody who was told.
  void prune(Time now, const Promises& promises);

 private:
  std::size_t index(Key key) const {
    return key.number + (key.kind == Kind::semaphore ? keys_ : 0);
  }

  const std::uint32_t keys_;
  std::vector<std::deque<Acquisition>> of_keys_;
};

}  // namespace lockd::simulation
