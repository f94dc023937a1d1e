// ClusterLinks: what the links of other servers to this one share, on all loops. Any thread may
// call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.h"
#include "cluster/channel_ids.h"

namespace lockd {

// This server's clock, as its followers know it.
inline std::uint64_t link_clock_ms(std::chrono::steady_clock::time_point now) {
  const auto since = now.time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(since).count());
}

class ClusterLinks {
 public:
  explicit ClusterLinks(std::atomic<SessionId>& last_session) : ids(last_session) {}

  // The session that the link of this name has; 0: none.
  SessionId find(const std::string& link) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(link);
    return found == sessions_.end() ? 0 : found->second;
  }
  // From a link's proof until all of its clients have ended here.
  void enter(const std::string& link, SessionId session) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    sessions_[link] = session;
  }
  void leave(const std::string& link, SessionId session) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(link);
    if (found != sessions_.end() && found->second == session) sessions_.erase(found);
  }

  ChannelIds ids;
  std::atomic<std::size_t> channels{0};  // of all links, that are open

 private:
  Mutex mutex_;
  std::map<std::string, SessionId> sessions_ GUARDED_BY(mutex_);
};

}  // namespace lockd
