#include "journal/append_buffer.h"

#include <algorithm>
#include <utility>

#include "journal/format.h"

namespace lockd {
namespace {

// How much memory is kept for the next time: of chunks, and of each thread's scratch.
constexpr std::size_t kSpareMax = 2;
constexpr std::size_t kScratchKept = std::size_t{64} << 10;

}  // namespace

// Encoded before the mutex is taken, which is the one that all threads share.
Position AppendBuffer::append(std::span<const Event> events) {
  thread_local std::vector<char> scratch(4 * kRecordSizeMax);
  std::size_t used = 0;
  Fence largest = 0;
  Position end = 0;
  for (const Event& event : events) {
    if (used + kRecordSizeMax > options_.payload_max) {
      end = add(scratch.data(), used, largest);
      used = 0;
    }
    if (used + kRecordSizeMax > scratch.size()) scratch.resize(2 * scratch.size());
    char* const at = scratch.data() + used;
    used += static_cast<std::size_t>(encode(event, at) - at);
    largest = std::max(largest, event.fence);
  }
  end = add(scratch.data(), used, largest);
  if (scratch.size() > kScratchKept) std::vector<char>(kScratchKept).swap(scratch);
  return end;
}

Position AppendBuffer::add(const char* bytes, std::size_t size, Fence largest) {
  MutexLock lock(mutex_);
  largest_ = std::max(largest_, largest);
  add_bytes(bytes, size);
  if (!discarding_) count_.store(count() + 1, std::memory_order_relaxed);
  return end_;
}

void AppendBuffer::add_bytes(const char* bytes, std::size_t size) {
  end_ += size;
  if (discarding_) return;
  if (chunks_.empty() || chunks_.back().payload_size() + size > options_.payload_max) {
    begin_chunk();
  }
  chunks_.back().bytes.append(bytes, size);
  size_.store(size_.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
}

void AppendBuffer::begin_chunk() {
  Chunk chunk;
  if (!spare_.empty()) {
    chunk = std::move(spare_.back());
    spare_.pop_back();
  }
  chunk.bytes.assign(kFrameHeaderSize, '\0');
  chunks_.push_back(std::move(chunk));
}

void AppendBuffer::add_floor() {
  char bytes[kRecordSizeMax];
  const char* const end = encode({.type = Event::Type::fence_floor, .fence = floor_}, bytes);
  add_bytes(bytes, static_cast<std::size_t>(end - bytes));
}

AppendBuffer::Taken AppendBuffer::take(bool restate_floor) {
  Taken taken;
  MutexLock lock(mutex_);
  // Raised when half of it is used up, so that hardly anybody has to wait for it.
  const Fence step = options_.fence_step;
  if (step != 0 && !chunks_.empty() && largest_ + step / 2 > floor_ && floor_ < kFenceMax) {
    floor_ = std::min(largest_ + step, kFenceMax);
    taken.raises_floor = true;
  }
  if (taken.raises_floor || (restate_floor && floor_ != 0)) add_floor();
  taken.chunks.swap(chunks_);
  taken.end = end_;
  Position position = end_;
  for (auto chunk = taken.chunks.rbegin(); chunk != taken.chunks.rend(); ++chunk) {
    position -= chunk->payload_size();
    chunk->position = position;
  }
  size_.store(0, std::memory_order_relaxed);
  taken.count = count_.exchange(0, std::memory_order_relaxed);
  return taken;
}

void AppendBuffer::give_back(std::vector<Chunk> chunks) {
  MutexLock lock(mutex_);
  for (Chunk& chunk : chunks) {
    if (spare_.size() == kSpareMax) break;
    spare_.push_back(std::move(chunk));
  }
}

void AppendBuffer::discard() {
  MutexLock lock(mutex_);
  discarding_ = true;
  chunks_.clear();
  spare_.clear();
  size_.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
}

}  // namespace lockd
