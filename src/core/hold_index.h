// Finds one of a semaphore's many holds, by fence or by name. Locks do not need it: they have one.
//
// Not thread-safe. Owns no hold.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "core/semaphore.h"

namespace lockd {

class HoldIndex {
 public:
  // The hold's fence and holder must not change while it is here.
  void insert(Hold* hold);
  void remove(Hold* hold);
  std::size_t size() const { return by_fence_.size(); }

  // A fence is unique for its key only: keys that had been in several tables, each with fences of
  // its own, may be recovered into one.
  Hold* find(const Semaphore* semaphore, Fence fence) const;
  Hold* find(const Semaphore* semaphore, std::string_view name) const;

 private:
  struct Name {
    const Semaphore* semaphore;
    std::string_view name;
    bool operator==(const Name&) const = default;
  };
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    std::size_t operator()(const Name& n) const {
      return hash_bytes(n.name, reinterpret_cast<std::uintptr_t>(n.semaphore));
    }
    std::size_t operator()(const Hold* h) const { return (*this)(name_of(h)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Hold* a, const Hold* b) const { return a == b; }
    bool operator()(const Name& a, const Hold* b) const { return a == name_of(b); }
    bool operator()(const Hold* a, const Name& b) const { return name_of(a) == b; }
  };
  static Name name_of(const Hold* h) { return {h->semaphore, h->holder.view().name()}; }

  boost::unordered_flat_map<std::pair<const Semaphore*, Fence>, Hold*> by_fence_;
  boost::unordered_flat_set<Hold*, Hash, Equal> by_name_;
};

}  // namespace lockd
