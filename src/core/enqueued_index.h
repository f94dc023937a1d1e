// The two-phase acquisitions of a table's sessions: one per session and key.
//
// A grant that lapsed before it was awaited is remembered, so that its session hears of it once;
// but only the latest kLapsedMax of them, and only while the key exists: nobody can make the table
// grow by never asking.
//
// Not thread-safe. Owns what it holds.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>

#include "core/semaphore.h"

namespace lockd {

class EnqueuedIndex {
 public:
  static constexpr std::size_t kLapsedMax = 1024;

  EnqueuedIndex() = default;
  EnqueuedIndex(const EnqueuedIndex&) = delete;
  EnqueuedIndex& operator=(const EnqueuedIndex&) = delete;
  ~EnqueuedIndex();

  Enqueued* find(SessionId session, const Semaphore* semaphore) const;

  // Precondition: find() gives null.
  Enqueued* insert(SessionId session, Semaphore* semaphore);
  // Precondition: in no session's list.
  void remove(Enqueued* enqueued);

  // It has neither place nor hold any more. Returns one that is to be forgotten to make room, or
  // null; the caller takes it out of its session and removes it.
  Enqueued* lapse(Enqueued* enqueued);
  // Any lapsed one of this key, or null.
  Enqueued* find_lapsed(const Semaphore* semaphore) const;

  std::size_t size() const { return all_.size(); }

 private:
  struct Id {
    SessionId session;
    const Semaphore* semaphore;
    bool operator==(const Id&) const = default;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Id& id) const {
      return static_cast<std::size_t>(id.session * 0x9e3779b97f4a7c15) ^
             reinterpret_cast<std::uintptr_t>(id.semaphore);
    }
    std::size_t operator()(const Enqueued* e) const { return (*this)(id_of(e)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Enqueued* a, const Enqueued* b) const { return a == b; }
    bool operator()(const Id& a, const Enqueued* b) const { return a == id_of(b); }
    bool operator()(const Enqueued* a, const Id& b) const { return id_of(a) == b; }
  };
  static Id id_of(const Enqueued* e) { return {e->session, e->semaphore}; }

  boost::unordered_flat_set<Enqueued*, Hash, Equal> all_;
  List<Enqueued, &Enqueued::lapsed_peers> lapsed_;  // the oldest first
  std::size_t lapsed_count_ = 0;
};

}  // namespace lockd
