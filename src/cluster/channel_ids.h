// ChannelIds: session ids for clients that connected to another server before they are known here.
//
// When two connections send one secret, the one that was accepted last has the hold, and session
// ids say which that is. So a client of another server needs an id between those of the clients
// that connected here before and after it did, however long its channel took to open: otherwise a
// client that gave up at one server and came here could lose its lock to the connection that it
// left.
//
// reserve() sets ids aside as time passes. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "base/mutex.h"
#include "lockd/types.h"

namespace lockd {

class ChannelIds {
 public:
  static constexpr SessionId kBlockSize = 64;
  static constexpr std::size_t kBlocksMax = 4096;

  // `last` is the last id that was given to any session. It outlives this.
  explicit ChannelIds(std::atomic<SessionId>& last) : last_(last) {}

  // Every few milliseconds: those who connect from now on are younger than the clients that have an
  // id by now.
  void reserve(std::uint64_t now_ms) EXCLUDES(mutex_);
  // The id of a client that connected then. It may turn out older than a client that connected just
  // before it, by the time between two calls of reserve(), and never younger than a later one.
  SessionId take(std::uint64_t connected_ms) EXCLUDES(mutex_);

 private:
  // For clients that connected from then on, until the next block begins.
  struct Block {
    std::uint64_t since_ms;
    SessionId next;
    SessionId end;
  };

  void add_block(std::uint64_t now_ms) REQUIRES(mutex_);

  std::atomic<SessionId>& last_;
  Mutex mutex_;
  std::deque<Block> blocks_ GUARDED_BY(mutex_);
};

}  // namespace lockd
