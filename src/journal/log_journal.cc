#include "journal/log_journal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/secret.h"
#include "journal/recovery.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kLookForSpaceNs = 100 * kNsPerMs;
constexpr std::uint64_t kLookForFileNs = 1000 * kNsPerMs;

// How far ahead of the fences their floor is kept when they are told before they are durable.
constexpr Fence kFenceStep = Fence{1} << 20;

JournalId random_id() {
  TokenSource source;
  const std::uint64_t words[2] = {source.next(), source.next()};
  JournalId id;
  std::memcpy(id.data(), words, sizeof words);
  return id;
}

}  // namespace

LogJournal::LogJournal(Storage& storage, LogJournalOptions options)
    : storage_(storage),
      options_(std::move(options)),
      survey_((lock_directory(storage_), scan(storage_, options_.log))),
      pending_({.size_max = options_.pending_max, .fence_step = syncs_always() ? 0 : kFenceStep},
               survey_.end()) {
  repair(storage_, survey_, options_.log);
  id_ = !survey_.is_new() ? survey_.segments.back().header.journal
                          : options_.id.value_or(random_id());
  const ClockReading now = storage_.moment();
  offset_ns_ = engine_time_at(now, survey_).ns - now.boot_ns;
  durable_ = written_ = synced_ = survey_.end();
}

LogJournal::~LogJournal() = default;

Time LogJournal::now() const { return Time{offset_ns_ + storage_.moment().boot_ns}; }

bool LogJournal::recover(const std::function<void(const Event&)>& apply) {
  const std::uint64_t events = replay(storage_, survey_, options_.log, apply);
  if (const Fault fault = begin()) refuse_fault(storage_.directory(), fault);
  survey_ = {};
  return events != 0;
}

FrameHeader LogJournal::frame(Position position) const {
  const ClockReading now = storage_.moment();
  return {.position = position,
          .synced = synced_,
          .engine_time = {offset_ns_ + now.boot_ns},
          .wall_ns = now.wall_ns};
}

void LogJournal::attach(Source* source) {
  MutexLock lock(source_mutex_);
  source_ = source;
}

Journal::State LogJournal::state() const noexcept {
  const State state = state_.load(std::memory_order_acquire);
  return state == State::accepting && pending_.is_crowded() ? State::full : state;
}

void LogJournal::commit(Position position) {
  Position wanted = wanted_.load(std::memory_order_relaxed);
  while (position > wanted &&
         !wanted_.compare_exchange_weak(wanted, position, std::memory_order_seq_cst)) {
  }
}

Duration LogJournal::turn() {
  if (failed()) return Duration::max();
  now_ns_ = storage_.moment().boot_ns;
  describe_some();
  write_pending();
  tell_progress();  // before what takes long
  if (account_ == Account::none) open_next_segment();
  look_after_space();
  look_after_file();
  tell_progress();
  return until_next_turn();
}

void LogJournal::flush() {
  if (segment_ == nullptr || failed()) return;
  sync_due_ns_ = 1;  // long ago
  turn();
}

void LogJournal::write_pending() {
  const bool completes = account_ == Account::to_close;
  AppendBuffer::Taken taken = pending_.take(completes);
  const bool sync_only = taken.chunks.empty() && !completes;
  if (sync_only && (sync_due_ns_ == 0 || now_ns_ < sync_due_ns_)) return;

  Fault fault = write_chunks(taken, completes);
  written_.store(taken.end, std::memory_order_seq_cst);
  if (!fault && (must_sync(taken) || completes)) fault = sync();
  if (fault) return fail(fault.message());
  pending_.give_back(std::move(taken.chunks));
  publish(syncs_always() ? synced_ : taken.end);
  if (completes) finish_account();
}

Fault LogJournal::write_chunks(AppendBuffer::Taken& taken, bool completes) {
  if (taken.chunks.empty() && completes) {
    taken.chunks.push_back({std::string(kFrameHeaderSize, '\0'), taken.end});
  }
  std::uint64_t size = 0;
  for (const Chunk& chunk : taken.chunks) size += chunk.bytes.size();
  if (const Fault fault = make_room(size)) return fault;
  for (Chunk& chunk : taken.chunks) {
    FrameHeader header = frame(chunk.position);
    header.completes = completes && &chunk == &taken.chunks.back();
    if (const Fault fault = segment_->write(header, chunk.bytes)) return fault;
  }
  if (!taken.chunks.empty() && sync_due_ns_ == 0) {
    sync_due_ns_ = now_ns_ + static_cast<std::uint64_t>(options_.sync_interval.count());
  }
  return {};
}

// Room for `size` bytes and, if there can be, for the reserve behind them.
Fault LogJournal::make_room(std::uint64_t size) {
  size += kFrameHeaderSize;  // a seal always fits
  if (segment_->has_room(size)) return {};
  const bool full = state_.load(std::memory_order_relaxed) == State::full;
  if (full && now_ns_ < space_due_ns_ && segment_->space() >= size) return {};
  const Fault fault = segment_->make_room(size);
  if (!fault) {
    if (full) {
      options_.log("journal: there is space on the disk again; locks are granted again");
      enter(State::accepting);
    }
    return {};
  }
  if (!fault.is_no_space() || segment_->space() < size) return fault;  // the reserve is gone
  space_due_ns_ = now_ns_ + kLookForSpaceNs;
  if (!full) {
    options_.log("journal: " + path_of(storage_, segment_->number()) + ": " + fault.message() +
                 "; locks are not granted until there is space, releases and renewals work as "
                 "long as the reserve of " +
                 std::to_string(segment_->space()) + " bytes lasts");
    enter(State::full);
  }
  return {};
}

bool LogJournal::must_sync(const AppendBuffer::Taken& taken) const {
  return syncs_always() || taken.raises_floor || (sync_due_ns_ != 0 && now_ns_ >= sync_due_ns_);
}

Fault LogJournal::sync() {
  const Position position = written_.load(std::memory_order_relaxed);
  const std::uint64_t began_ns = storage_.moment().boot_ns;
  if (const Fault fault = segment_->sync()) return fault;
  sync_time_.add(Duration(static_cast<std::int64_t>(storage_.moment().boot_ns - began_ns)));
  synced_ = position;
  sync_due_ns_ = 0;
  return {};
}

void LogJournal::publish(Position position) {
  if (position == durable_.load(std::memory_order_relaxed)) return;
  durable_.store(position, std::memory_order_release);
  progress_ = true;
}

void LogJournal::look_after_space() {
  if (state_.load(std::memory_order_relaxed) != State::full || now_ns_ < space_due_ns_) return;
  if (const Fault fault = make_room(0)) fail(fault.message());
}

void LogJournal::look_after_file() {
  if (failed() || now_ns_ < file_due_ns_) return;
  file_due_ns_ = now_ns_ + kLookForFileNs;
  if (!segment_->is_in_place()) fail("the file was removed or replaced");
}

void LogJournal::enter(State state) {
  state_.store(state, std::memory_order_release);
  progress_ = true;
}

void LogJournal::fail(const std::string& why) {
  options_.log("journal: " + path_of(storage_, segment_->number()) + ": " + why +
               "; nothing more is acknowledged. Mend the disk and start again");
  enter(State::failed);
  pending_.discard();
}

void LogJournal::tell_progress() {
  if (!std::exchange(progress_, false)) return;
  MutexLock lock(source_mutex_);
  if (source_ != nullptr) source_->progressed();
}

Duration LogJournal::until_next_turn() const {
  if (failed()) return Duration::max();
  const bool full = state_.load(std::memory_order_relaxed) == State::full;
  if (account_ != Account::none && has_source_ && !full) return Duration::zero();
  std::uint64_t due = UINT64_MAX;
  if (full) due = std::min(due, space_due_ns_);
  if (sync_due_ns_ != 0) due = std::min(due, sync_due_ns_);
  if (due == UINT64_MAX) return Duration::max();
  return Duration(static_cast<std::int64_t>(due > now_ns_ ? due - now_ns_ : 0));
}

}  // namespace lockd
