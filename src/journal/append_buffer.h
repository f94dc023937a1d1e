// What has been appended and is not yet written: frames to be, each with room for its header at the
// front, so that nothing is copied again.
//
// Any thread may append; the journal's alone takes. What is kept is bounded by `size_max` in the
// sense that is_crowded() then asks for no more grants: releases and expiries always fit, and are
// no more than what was granted before. Renewals fit as well: is_behind() asks those who send them
// to wait, long before that.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "journal/format.h"
#include "lockd/journal.h"

namespace lockd {

// Bytes: kFrameHeaderSize for the header, then the payload.
struct Chunk {
  std::string bytes;
  Position position = 0;  // of the payload's first byte

  std::size_t payload_size() const { return bytes.size() - kFrameHeaderSize; }
};

struct AppendBufferOptions {
  std::size_t size_max = std::size_t{64} << 20;
  std::size_t behind_from = std::size_t{16} << 20;
  std::size_t payload_max = kPayloadMax;  // of a chunk
  // Not zero: fences are told before they are durable, so a floor this far above them has to be.
  Fence fence_step = 0;
};

class AppendBuffer {
 public:
  AppendBuffer(const AppendBufferOptions& options, Position start)
      : options_(options), end_(start) {}

  // The events stay together in one frame, unless they are more than a frame holds.
  Position append(std::span<const Event> events) EXCLUDES(mutex_);

  struct Taken {
    std::vector<Chunk> chunks;
    Position end = 0;
    std::size_t count = 0;      // of appends
    bool raises_floor = false;  // no fence in it may be told before it is durable
  };
  // Everything appended so far. With `restate_floor`, the floor of fences once more: what is taken
  // ends a snapshot that has to stand alone.
  Taken take(bool restate_floor) EXCLUDES(mutex_);
  // What was taken has been written: its memory may serve again.
  void give_back(std::vector<Chunk> chunks) EXCLUDES(mutex_);

  // From now on only positions are counted: nothing will be written any more.
  void discard() EXCLUDES(mutex_);

  // Behind all that was appended.
  Position end() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return end_;
  }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // How many appends have not been taken, or parts of large ones.
  std::size_t count() const { return count_.load(std::memory_order_relaxed); }
  bool is_crowded() const { return size() > options_.size_max; }
  bool is_behind() const { return size() > options_.behind_from; }

 private:
  Position add(const char* bytes, std::size_t size, Fence largest) EXCLUDES(mutex_);
  void add_bytes(const char* bytes, std::size_t size) REQUIRES(mutex_);
  void add_floor() REQUIRES(mutex_);
  void begin_chunk() REQUIRES(mutex_);

  const AppendBufferOptions options_;

  // Written under the mutex.
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> count_{0};

  mutable Mutex mutex_;
  std::vector<Chunk> chunks_ GUARDED_BY(mutex_);
  std::vector<Chunk> spare_ GUARDED_BY(mutex_);
  Position end_ GUARDED_BY(mutex_);
  Fence largest_ GUARDED_BY(mutex_) = 0;  // fence of any event
  Fence floor_ GUARDED_BY(mutex_) = 0;
  bool discarding_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockd
