// What clients were told, and what follows from it: the promises, as seen from outside.
//
// A client that was granted something knows the least of it: it asked at `call`, so its lease
// cannot end before `call` and the lease's length, whenever the server executed it. Until then,
// unless it did something that may end the hold earlier, it is certain to hold. Two who are certain
// of one lock at the same moment are a broken promise, and so is a renewal that is refused to one
// who is certain. What is asserted never rests on what the server knows, only on what it said.
//
//   exclusion              no more permits are certain at once than the limit; of a lock one is, or
//                          all who are share it
//   acknowledged-in-force  who is certain can renew and release, also after a crash
//   fences-rise            a grant's fence is larger than every fence told before it was asked for
//   one-grant-one-holder   no fence of a key is told to two holders
//   one-secret-one-grant   who is certain of a hold by a secret is granted no other by it
//   never-revived          who is told of a renewal had not asked for it after the lease's end, nor
//                          after an admin was told that the hold has ended
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/types.h"

namespace lockd::simulation {

// How the names begin under which clients ask for several keys in one step. Each such name is of
// one client, and waits for one set at a time.
inline constexpr std::string_view kSetHolder = "set-";

// One of the few keys that everybody wants.
struct Key {
  Kind kind = Kind::lock;
  std::uint32_t number = 0;

  static constexpr std::string_view kPrefix = "key-";
  static Key of_name(Kind kind, std::string_view name) {
    Key key{kind};
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), key.number);
    return key;
  }

  std::string name() const { return std::string(kPrefix) + std::to_string(number); }
  friend bool operator==(const Key&, const Key&) = default;
};

// What a hold takes of its key.
struct Terms {
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;

  friend bool operator==(const Terms&, const Terms&) = default;
};

// One hold, as its holder knows it.
struct Known {
  Key key{};
  std::uint32_t client = 0;
  std::string holder{};  // a name, or a token
  Terms terms{};
  Fence fence = 0;
  Duration ttl{};                // its own lease
  Time certain_until{};          // in the past once it is not
  Time over_at{};                // by then its lease has run out, unless something moved it
  Time heard{};                  // when something was last told of it
  std::uint64_t connection = 0;  // it ends with this one; 0: by its lease alone
  bool may_go = false;           // with a connection that is gone, once the server notices
  bool in_question = false;      // a request about it is on its way
  bool two_phase = false;        // it can still be awaited
};

class Promises {
 public:
  Promises(std::uint32_t keys, std::uint32_t limit) : keys_(keys), limit_(limit), told_(2 * keys) {}

  // To be remembered when something is asked for: what is granted then has a larger fence.
  Fence largest_told(Key key) const { return told_[index(key)].largest; }

  // A new hold, or the same one again with its lease refreshed. Throws crash::Violation.
  void granted(Time now, const Known& known, Fence largest_when_asked);

  // Everything that a client knows of, to pick from; null if it knows nothing.
  std::vector<Known*> of_client(std::uint32_t client);
  Known* find(Key key, Fence fence);
  // The last that was told of by that secret.
  const Known* find_by_secret(Key key, std::string_view secret) const;
  // What is certain to be held by that connection, with nothing on its way that may end it.
  const Known* certain_on(std::uint64_t connection, Time now) const;
  void forget(const Known& known);

  // An admin ends a hold, whether or not its holder has heard of it yet: from now on nobody is
  // certain of it. Later the admin is told.
  void revoked(Key key, Fence fence, Time now);
  void revocation_told(Key key, Fence fence, Time now);
  bool is_revoked(Key key, Fence fence) const { return told_[index(key)].revoked.contains(fence); }
  // Whether that was told before this.
  bool was_revoked_before(Key key, Fence fence, Time then) const;
  // An admin sets a semaphore's limit. Whoever was granted it under the larger one may be heard of
  // at any later time.
  void resized(Key key, std::uint32_t limit);
  // That was ever in force.
  std::uint32_t least_limit(Key key) const { return std::min(limit_, told_[index(key)].limit_min); }

  // What may have ended with a connection that is no more.
  void connection_lost(std::uint64_t connection, bool holds_go, Time now);
  // The server has lost what it knew.
  void all_lost(Time now);
  // Forgets what has been over for long.
  void prune(Time now);

  std::uint64_t grants() const { return grants_; }
  // Of those, by a secret of what was known already.
  std::uint64_t grants_again() const { return grants_again_; }

 private:
  struct Told {
    Fence largest = 0;
    std::uint32_t limit_max = 0;           // that an admin ever set
    std::uint32_t limit_min = UINT32_MAX;  // likewise
    std::vector<Known> known{};
    std::map<Fence, Time> revoked{};  // and when the admin was told
  };

  std::size_t index(Key key) const {
    return key.number + (key.kind == Kind::semaphore ? keys_ : 0);
  }
  const Known* other_by_secret(const Known& known, Time now) const;
  const Known* too_many(const Known& known, Time now) const;

  const std::uint32_t keys_;
  const std::uint32_t limit_;
  std::vector<Told> told_;
  std::uint64_t grants_ = 0;
  std::uint64_t grants_again_ = 0;
};

}  // namespace lockd::simulation
