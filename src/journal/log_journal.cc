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
constexpr std::uint64_t kOpenSegmentAgainNs = 1000 * kNsPerMs;

// How far ahead of the fences their floor is kept when they are told before they are durable.
constexpr Fence kFenceStep = Fence{1} << 20;

// A segment may become this many times as long as the snapshot it began with.
constexpr std::uint64_t kSnapshotsPerSegment = 3;

// How much of a snapshot is written in one turn while somebody waits for it.
constexpr std::size_t kDescribeBusy = std::size_t{64} << 10;

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
      scan_((lock_directory(storage_), scan(storage_, options_.log))),
      pending_({.size_max = options_.pending_max,
                .behind_from = options_.behind_from,
                .fence_step = syncs_always() ? 0 : kFenceStep},
               scan_.end()) {
  repair(storage_, scan_, options_.log);
  id_ = !scan_.is_new() ? scan_.segments.back().header.journal : options_.id.value_or(random_id());
  const ClockReading now = storage_.moment();
  offset_ns_ = engine_time_at(now, scan_).ns - now.boot_ns;
  durable_ = written_ = synced_ = scan_.end();
}

LogJournal::~LogJournal() = default;

bool LogJournal::recover(const std::function<void(const Event&)>& apply) {
  const std::uint64_t events = replay(storage_, scan_, options_.log, apply);
  if (const Fault fault = begin()) refuse_fault(storage_.directory(), fault);
  scan_ = {};
  return events != 0;
}

// Seals what was recovered, and opens a segment of this run's own.
Fault LogJournal::begin() {
  std::uint64_t number = 1;
  if (!scan_.is_new()) {
    const SegmentSummary& last = scan_.segments.back();
    number = last.number() + 1;
    std::unique_ptr<StorageFile> file;
    if (const Fault fault = storage_.open(segment_name(last.number()), &file)) return fault;
    segment_ = std::make_unique<SegmentWriter>(std::move(file), last.number(), last.end_offset,
                                               last.size, options_.segment);
  }
  std::unique_ptr<SegmentWriter> next;
  const Fault fault = SegmentWriter::create(storage_, next_header(number), options_.segment, &next);
  if (fault) return fault;
  if (!scan_.is_new()) {
    if (const Fault unsealed = seal()) return unsealed;
    older_ = scan_.older;
    for (const SegmentSummary& segment : scan_.segments) older_.push_back(segment.number());
    snapshot_ = SnapshotStep::begun;
  }
  segment_ = std::move(next);
  return {};
}

Time LogJournal::now() const { return Time{offset_ns_ + storage_.moment().boot_ns}; }

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
  turn_began_ns_.store(now_ns_, std::memory_order_relaxed);
  describe_some();
  write_pending();
  tell_progress();  // before what takes long
  if (snapshot_ == SnapshotStep::none) open_next_segment();
  look_after_space();
  end_storage_wait();
  tell_progress();
  return until_next_turn();
}

// A turn that takes long waits for the storage: what else it does is bounded.
Duration LogJournal::storage_wait() const noexcept {
  const std::uint64_t began_ns = turn_began_ns_.load(std::memory_order_relaxed);
  const std::uint64_t now_ns = storage_.moment().boot_ns;
  if (began_ns == 0 || now_ns < began_ns) return {};
  return Duration(static_cast<std::int64_t>(now_ns - began_ns));
}

void LogJournal::end_storage_wait() {
  const Duration wait = storage_wait();
  turn_began_ns_.store(0, std::memory_order_relaxed);
  if (wait < kStorageWaitMax) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait);
  options_.log("journal: the disk has answered, after " + std::to_string(ms.count()) + " ms");
}

void LogJournal::flush() {
  if (segment_ == nullptr || failed()) return;
  sync_due_ns_ = 1;  // long ago
  turn();
}

// Without space for the seal behind it the frame is left out: the next start needs the seal more.
void LogJournal::close() {
  flush();
  if (segment_ == nullptr || failed() || segment_->space() < 2 * kFrameHeaderSize) return;
  if (const Fault fault = write_empty(frame(synced_))) fail(fault.message());
}

Duration LogJournal::until_next_turn() const {
  if (failed()) return Duration::max();
  const bool full = state_.load(std::memory_order_relaxed) == State::full;
  if (snapshot_ != SnapshotStep::none && has_source_ && !full) return Duration::zero();
  std::uint64_t due = UINT64_MAX;
  if (full) due = std::min(due, space_due_ns_);
  if (sync_due_ns_ != 0) due = std::min(due, sync_due_ns_);
  if (due == UINT64_MAX) return Duration::max();
  return Duration(static_cast<std::int64_t>(due > now_ns_ ? due - now_ns_ : 0));
}

void LogJournal::tell_progress() {
  if (!std::exchange(progress_, false)) return;
  MutexLock lock(source_mutex_);
  if (source_ != nullptr) source_->progressed();
}

// Writing.

void LogJournal::write_pending() {
  const bool completes = snapshot_ == SnapshotStep::to_close;
  AppendBuffer::Taken taken = pending_.take(completes);
  const bool sync_only = taken.chunks.empty() && !completes;
  if (sync_only && (sync_due_ns_ == 0 || now_ns_ < sync_due_ns_)) return;

  Fault fault = write_chunks(taken, completes);
  written_.store(taken.end, std::memory_order_seq_cst);
  if (!fault && (must_sync(taken) || completes)) fault = sync();
  if (fault) return fail(fault.message());
  // Before anyone is told: what was written into a file without a name is nowhere.
  if (!segment_->is_in_place()) return fail("the file or its directory was removed or replaced");
  pending_.give_back(std::move(taken.chunks));
  publish(syncs_always() ? synced_ : taken.end);
  if (completes) finish_snapshot();
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

FrameHeader LogJournal::frame(Position position) const {
  const ClockReading now = storage_.moment();
  return {.position = position,
          .synced = synced_,
          .engine_time = {offset_ns_ + now.boot_ns},
          .wall_ns = now.wall_ns};
}

// Room for `size` bytes and, if there can be, for the reserve behind them.
Fault LogJournal::make_room(std::uint64_t size) {
  size += 2 * kFrameHeaderSize;  // the frame that closes the journal, and a seal, always fit
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

// How segments follow one another, and how a snapshot makes the older ones needless.

// A snapshot goes on between the commits. When nobody waits it may go `describe_ahead`; otherwise a
// little, but never less than everybody else has appended: it would fall behind, and the log grow.
void LogJournal::describe_some() {
  MutexLock lock(source_mutex_);
  has_source_ = source_ != nullptr;
  if (!has_source_ || (snapshot_ != SnapshotStep::begun && snapshot_ != SnapshotStep::goes_on))
    return;
  if (state_.load(std::memory_order_relaxed) != State::accepting) return;
  const std::size_t as_much_again = 2 * pending_.size();
  const std::size_t idle = std::max(options_.describe_ahead, as_much_again);
  const std::size_t busy = std::min(idle, std::max(kDescribeBusy, as_much_again));
  do {
    const bool more = source_->describe_some(snapshot_ == SnapshotStep::begun);
    snapshot_ = more ? SnapshotStep::goes_on : SnapshotStep::to_close;
  } while (snapshot_ == SnapshotStep::goes_on && pending_.size() < (is_wanted() ? busy : idle));
}

// The snapshot is durable: what came before it is of no use any more.
void LogJournal::finish_snapshot() {
  snapshot_ = SnapshotStep::none;
  snapshot_size_ = segment_->offset();
  std::vector<std::uint64_t> left;
  for (const std::uint64_t number : older_) {
    const Fault fault = storage_.remove(segment_name(number));
    if (!fault || fault.error == ENOENT) continue;
    options_.log("journal: " + path_of(storage_, number) + ": " + fault.message() +
                 "; it is of no use any more, and will be removed later");
    left.push_back(number);
  }
  const bool removed = left.size() < older_.size();
  older_ = std::move(left);
  if (!removed) return;
  if (const Fault fault = storage_.sync_directory()) fail(fault.message());
}

// A new segment comes into use in an order that a crash can interrupt anywhere: it is made, and
// durable; then the old one is sealed; only then does the first frame go to the new one.
void LogJournal::open_next_segment() {
  const std::uint64_t size_max =
      std::max(options_.segment_size, kSnapshotsPerSegment * snapshot_size_);
  if (!has_source_ || segment_->offset() <= size_max || now_ns_ < segment_due_ns_) return;
  if (state_.load(std::memory_order_relaxed) != State::accepting) return;
  if (synced_ != written_.load(std::memory_order_relaxed)) {
    if (const Fault fault = sync()) return fail(fault.message());
  }
  std::unique_ptr<SegmentWriter> next;
  const Fault fault =
      SegmentWriter::create(storage_, next_header(segment_->number() + 1), options_.segment, &next);
  if (fault) return give_up_next_segment(fault);
  if (const Fault unsealed = seal()) return fail(unsealed.message());
  older_.push_back(segment_->number());
  segment_ = std::move(next);
  snapshot_ = SnapshotStep::begun;
  if (std::exchange(lacks_segment_, false)) {
    options_.log("journal: the log goes on in a new segment again");
  }
}

// A segment that could not be made was never used: the old one serves a while longer. A fault of
// the disk is another matter: what it holds is not known then.
void LogJournal::give_up_next_segment(const Fault& fault) {
  if (!fault.is_shortage() && std::string_view(fault.operation) != "create")
    return fail(fault.message());
  if (const Fault kept = remove_next_segment()) return fail(kept.message());
  segment_due_ns_ = now_ns_ + kOpenSegmentAgainNs;
  if (std::exchange(lacks_segment_, true)) return;
  options_.log("journal: no new segment can be made (" + fault.message() +
               "); the log goes on in the old one, and grows, until there can be one");
}

// The old segment will go on past where that one says it begins: it must be gone before that.
Fault LogJournal::remove_next_segment() {
  const Fault kept = storage_.remove(segment_name(segment_->number() + 1));
  if (kept && kept.error != ENOENT) return kept;
  return storage_.sync_directory();
}

SegmentHeader LogJournal::next_header(std::uint64_t number) const {
  const ClockReading now = storage_.moment();
  return {.journal = id_,
          .number = number,
          .start = written_.load(std::memory_order_relaxed),
          .opened = now,
          .engine_time = {offset_ns_ + now.boot_ns}};
}

// Precondition: everything before it has been synced.
Fault LogJournal::seal() {
  FrameHeader last = frame(synced_);
  last.seals = true;
  return write_empty(last);
}

Fault LogJournal::write_empty(const FrameHeader& header) {
  char bytes[kFrameHeaderSize];
  if (const Fault fault = segment_->write(header, bytes)) return fault;
  return segment_->sync();
}

// Trouble.

void LogJournal::look_after_space() {
  if (state_.load(std::memory_order_relaxed) != State::full || now_ns_ < space_due_ns_) return;
  if (const Fault fault = make_room(0)) fail(fault.message());
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

}  // namespace lockd
