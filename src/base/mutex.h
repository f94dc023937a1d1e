// std::mutex, annotated: clang's -Wthread-safety proves that what is guarded is touched only under
// its lock.
#pragma once

#include <mutex>

#if defined(__clang__)
#define LOCKD_ANNOTATION(x) __attribute__((x))
#else
#define LOCKD_ANNOTATION(x)
#endif

#ifndef GUARDED_BY  // Abseil, which gRPC brings along, has the same
#define GUARDED_BY(mutex) LOCKD_ANNOTATION(guarded_by(mutex))
#endif
#define REQUIRES(mutex) LOCKD_ANNOTATION(requires_capability(mutex))
#define EXCLUDES(mutex) LOCKD_ANNOTATION(locks_excluded(mutex))

namespace lockd {

class LOCKD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() LOCKD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() LOCKD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class LOCKD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LOCKD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() LOCKD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace lockd
