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

// How far ahead of the fences their floor is kept when they are told before they are durable.
constexpr Fence kFenceStep = Fence{1} << 20;

// A segment may become this many times as long as the snapshot it began with.
constexpr std::uint64_t kSnapshotsPerSegment = 3;

// When full, a segment that is shorter than this part of the reserve is not worth a new one.
constexpr std::uint64_t kReservePerSegment = 16;

// How much of a snapshot is written in one turn while somebody waits for it.
constexpr std::size_t kDescribeBusy = std::size_t{64} << 10;

// How long nothing is said of a disk that is full again soon after it was not.
constexpr std::uint64_t kQuietNs = 60'000'000'000;

// Renewals leave this part of the reserve to releases, and releases leave that one.
constexpr std::int64_t kReservePerScarce = 4;
constexpr std::int64_t kReservePerExhausted = 64;

JournalId random_id() {
  TokenSource source;
  const std::uint64_t words[2] = {source.next(), source.next()};
  JournalId id;
  std::memcpy(id.data(), words, sizeof words);
  return id;
}

// A segment that could not be made was never used: the old one serves a while longer. A fault of
// the disk is another matter: what it holds is not known then.
bool leaves_old_segment(const Fault& fault) {
  return std::string_view(fault.operation) == "create" || fault.is_shortage();
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

Fault LogJournal::begin() {
  now_ns_ = storage_.moment().boot_ns;
  if (scan_.is_new()) {
    return SegmentWriter::create(storage_, next_header(), options_.segment, &segment_);
  }
  const SegmentSummary& last = scan_.segments.back();
  std::unique_ptr<StorageFile> file;
  if (const Fault fault = storage_.open(segment_name(last.number()), &file)) return fault;
  segment_ = std::make_unique<SegmentWriter>(std::move(file), last.number(), last.end_offset,
                                             last.size, options_.segment);
  is_last_runs_ = true;
  older_ = scan_.older;
  for (const SegmentSummary& segment : scan_.segments) {
    if (segment.number() != last.number()) older_.push_back(segment.number());
  }
  const Fault fault = open_next();
  if (!fault.is_no_space()) return fault;
  if (const Fault kept = remove_next_segment()) return kept;
  if (has_clock_of(last)) {
    is_last_runs_ = false;
    snapshot_ = older_.empty() ? SnapshotStep::none : SnapshotStep::begun;
  } else if (const Fault lasting = leave_last_runs_segment()) {
    return lasting;
  }
  enter_full(fault);
  return {};
}

// Seals what was recovered, and goes on in a segment of this run's own, whose header says what the
// clocks are now: if the disk is full, in the space that the last run had left over. If that cannot
// be had either nothing is written until it can.
Fault LogJournal::leave_last_runs_segment() {
  Fault fault = open_next();
  if (!fault || !leaves_old_segment(fault)) return fault;
  if (const Fault kept = remove_next_segment()) return kept;
  fault = open_next_in_reserve(segment_->space());
  space_due_ns_ = now_ns_ + kLookForSpaceNs;
  return leaves_old_segment(fault) ? Fault{} : fault;
}

// Whether the time that its header tells is this run's time: then this run may go on with it.
bool LogJournal::has_clock_of(const SegmentSummary& segment) const {
  const ClockReading& opened = segment.header.opened;
  return opened.boot_id == storage_.moment().boot_id &&
         offset_ns_ == segment.header.engine_time.ns - opened.boot_ns;
}

Time LogJournal::now() const { return Time{offset_ns_ + storage_.moment().boot_ns}; }

void LogJournal::attach(Source* source) {
  MutexLock lock(source_mutex_);
  source_ = source;
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
  look_after_space();
  rotate();
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

// One turn is enough, unless something waits for room: the first may find that there is some, the
// next writes what waited, and the last what came behind it.
void LogJournal::flush() {
  constexpr int kTurnsMax = 3;
  for (int turns = 0; turns < kTurnsMax && segment_ != nullptr && !failed(); ++turns) {
    const bool waited = waits_for_room_;
    sync_due_ns_ = space_due_ns_ = 1;  // long ago
    turn();
    if (!waited && !waits_for_room_) return;
  }
}

// Without space for the seal behind it the frame is left out: the next start needs the seal more.
void LogJournal::close() {
  flush();
  if (segment_ == nullptr || failed() || segment_->space() < kEndRoom) return;
  if (is_last_runs_ || has_in_hand()) return;
  if (const Fault fault = write_empty(frame(synced_))) fail(fault.message());
}

Duration LogJournal::until_next_turn() const {
  if (failed()) return Duration::max();
  if (waits_for_room_ && !is_full()) return Duration::zero();  // there is some
  const bool may_describe = !is_full() || (now_ns_ >= segment_due_ns_ && !waits_for_room_);
  if (snapshot_ != SnapshotStep::none && has_source_ && may_describe) return Duration::zero();
  std::uint64_t due = UINT64_MAX;
  if (is_full()) due = std::min(due, space_due_ns_);
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
  if (!has_in_hand() && !take()) return;
  if (const Fault fault = write_in_hand()) return fail(fault.message());
  const bool waits = has_in_hand();
  if (waits_for_room_.exchange(waits) != waits) progress_ = true;
  if (waits) return;
  if (must_sync() || in_hand_completes_) {
    if (const Fault fault = sync()) return fail(fault.message());
  }
  // Before anyone is told: what was written into a file without a name is nowhere.
  if (!segment_->is_in_place()) return fail("the file or its directory was removed or replaced");
  pending_.give_back(std::move(in_hand_.chunks));
  in_hand_.chunks.clear();
  next_in_hand_ = 0;
  publish(syncs_always() ? synced_ : in_hand_.end);
  if (std::exchange(in_hand_completes_, false)) finish_snapshot();
}

// False if there is nothing to be written, nor to be synced.
bool LogJournal::take() {
  in_hand_completes_ = snapshot_ == SnapshotStep::to_close;
  in_hand_ = pending_.take(in_hand_completes_);
  if (in_hand_.chunks.empty() && in_hand_completes_) {
    in_hand_.chunks.push_back({std::string(kFrameHeaderSize, '\0'), in_hand_.end});
  }
  return has_in_hand() || (sync_due_ns_ != 0 && now_ns_ >= sync_due_ns_);
}

// As much of it as there is room for.
Fault LogJournal::write_in_hand() {
  if (!has_in_hand() || (waits_for_room_ && now_ns_ < space_due_ns_)) return {};
  note_room();
  if (const Fault fault = make_room(size_in_hand())) return fault;
  for (; has_in_hand() && !is_last_runs_; ++next_in_hand_) {
    Chunk& chunk = in_hand_.chunks[next_in_hand_];
    if (segment_->space() < chunk.bytes.size() + kEndRoom) break;
    FrameHeader header = frame(chunk.position);
    header.completes = in_hand_completes_ && next_in_hand_ + 1 == in_hand_.chunks.size();
    const Fault fault = segment_->write(header, chunk.bytes);
    if (fault.is_no_space()) {  // a file system may need more to change what is there
      enter_full(fault);
      break;
    }
    if (fault) return fault;
    written_.store(chunk.position + chunk.payload_size(), std::memory_order_seq_cst);
    if (sync_due_ns_ == 0) {
      sync_due_ns_ = now_ns_ + static_cast<std::uint64_t>(options_.sync_interval.count());
    }
  }
  note_room();
  return {};
}

FrameHeader LogJournal::frame(Position position) const {
  const ClockReading now = storage_.moment();
  return {.position = position,
          .synced = synced_,
          .engine_time = {offset_ns_ + now.boot_ns},
          .wall_ns = now.wall_ns};
}

bool LogJournal::must_sync() const {
  return syncs_always() || in_hand_.raises_floor || (sync_due_ns_ != 0 && now_ns_ >= sync_due_ns_);
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
  if (is_full()) return describe_into_reserve();
  const std::size_t as_much_again = 2 * pending_.size();
  const std::size_t idle = std::max(options_.describe_ahead, as_much_again);
  const std::size_t busy = std::min(idle, std::max(kDescribeBusy, as_much_again));
  do {
    const bool more = source_->describe_some(snapshot_ == SnapshotStep::begun);
    snapshot_ = more ? SnapshotStep::goes_on : SnapshotStep::to_close;
  } while (snapshot_ == SnapshotStep::goes_on && pending_.size() < (is_wanted() ? busy : idle));
}

// All at once, if it fits: half of a snapshot would be of no use.
void LogJournal::describe_into_reserve() {
  if (now_ns_ < segment_due_ns_) return;
  if (!source_->fits(reserve_left() / 4 * 3)) {
    segment_due_ns_ = now_ns_ + kOpenSegmentAgainNs;
    return;
  }
  while (source_->describe_some(snapshot_ == SnapshotStep::begun)) {
    snapshot_ = SnapshotStep::goes_on;
  }
  snapshot_ = SnapshotStep::to_close;
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
  space_due_ns_ = 0;  // there may be some now
  const bool removed = left.size() < older_.size();
  older_ = std::move(left);
  if (!removed) return;
  if (const Fault fault = storage_.sync_directory()) fail(fault.message());
}

// turn() calls this after look_after_space(): a full journal first looks for the space that its
// last snapshot has freed.
void LogJournal::rotate() {
  if (snapshot_ != SnapshotStep::none || is_last_runs_ || failed()) return;
  if (!has_source_ || now_ns_ < segment_due_ns_ || !is_long()) return;
  if (synced_ != written_.load(std::memory_order_relaxed)) {
    if (const Fault fault = sync()) return fail(fault.message());
  }
  const Fault fault = is_full() ? open_next_in_reserve(segment_->space() / 2) : open_next();
  if (fault) return give_up_next_segment(fault);
  segment_pause_ns_ = kOpenSegmentAgainNs;
  if (std::exchange(lacks_segment_, false)) {
    options_.log("journal: the log goes on in a new segment again");
  }
}

// Long enough that a snapshot in a new segment saves space. When full, it has to fit; and what it
// would take now counts, not what the last one took: the disk may be too small for so much more.
bool LogJournal::is_long() {
  if (!is_full()) {
    return segment_->offset() >
           std::max(options_.segment_size, kSnapshotsPerSegment * snapshot_size_);
  }
  const std::uint64_t least = options_.segment.reserve / kReservePerSegment;
  if (segment_->offset() <= kSnapshotsPerSegment * least) return false;
  const std::uint64_t size_max =
      std::min(segment_->offset() / kSnapshotsPerSegment, reserve_left() / 3);
  MutexLock lock(source_mutex_);
  if (source_ != nullptr && source_->fits(size_max)) return true;
  segment_due_ns_ = now_ns_ + kOpenSegmentAgainNs;
  return false;
}

Fault LogJournal::open_next() {
  std::unique_ptr<SegmentWriter> next;
  const Fault fault = SegmentWriter::create(storage_, next_header(), options_.segment, &next);
  return fault ? fault : enter_segment(next);
}

// In `size` bytes that the present segment has taken and not used; and then in the rest of them. If
// others are quicker to take what is given back, no more than that is lost.
Fault LogJournal::open_next_in_reserve(std::uint64_t size) {
  const std::uint64_t rest = segment_->space() - size;
  if (size <= 2 * kEndRoom) return {ENOSPC, "allocate"};
  if (const Fault fault = segment_->give_back_all_but(rest + kEndRoom)) return fault;
  size -= kEndRoom;
  std::unique_ptr<SegmentWriter> next;
  Fault fault =
      SegmentWriter::create_within(size, storage_, next_header(), options_.segment, &next);
  if (!fault) fault = enter_segment(next);
  if (!fault) {
    fault = next->give_back_all_but(0);  // the old one, by now
    size = rest;
  } else if (fault.is_no_space()) {
    if (const Fault kept = remove_next_segment()) return kept;
  }
  const Fault lost = segment_->take_space(0, size);
  note_room();
  return fault ? fault : lost;
}

// A new segment comes into use in an order that a crash can interrupt anywhere: it is made, and
// durable; then the old one is sealed; only then does the first frame go to the new one.
Fault LogJournal::enter_segment(std::unique_ptr<SegmentWriter>& next) {
  if (const Fault unsealed = seal()) return unsealed;
  older_.push_back(segment_->number());
  segment_.swap(next);
  is_last_runs_ = false;
  snapshot_ = SnapshotStep::begun;
  segment_due_ns_ = 0;
  return {};
}

void LogJournal::give_up_next_segment(const Fault& fault) {
  if (!leaves_old_segment(fault)) return fail(fault.message());
  if (const Fault kept = remove_next_segment()) return fail(kept.message());
  segment_due_ns_ = now_ns_ + segment_pause_ns_;
  if (is_full()) segment_pause_ns_ = 2 * segment_pause_ns_;  // every try may cost some reserve
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

SegmentHeader LogJournal::next_header() const {
  const ClockReading now = storage_.moment();
  return {.journal = id_,
          .number = segment_ == nullptr ? 1 : segment_->number() + 1,
          .start = written_.load(std::memory_order_relaxed),
          .opened = now,
          .engine_time = {offset_ns_ + now.boot_ns}};
}

// Precondition: everything before it has been synced.
Fault LogJournal::seal() {
  FrameHeader last = frame(synced_);
  last.seals = true;
  const Fault fault = write_empty(last);
  // Whatever kept it from being synced: whether it is sealed is not known then.
  const bool unknown = std::string_view(fault.operation) == "sync";
  return unknown && fault.is_shortage() ? Fault{EIO, "sync"} : fault;
}

Fault LogJournal::write_empty(const FrameHeader& header) {
  char bytes[kFrameHeaderSize];
  if (const Fault fault = segment_->write(header, bytes)) return fault;
  return segment_->sync();
}

// A full disk: what there is room for, and how it comes by more.

Journal::State LogJournal::state() const noexcept {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::accepting && pending_.is_crowded()) return State::full;
  if (state != State::full) return state;
  const std::int64_t room =
      room_.load(std::memory_order_relaxed) - static_cast<std::int64_t>(pending_.size());
  const auto reserve = static_cast<std::int64_t>(options_.segment.reserve);
  if (room <= reserve / kReservePerExhausted) return State::exhausted;
  return room < reserve / kReservePerScarce ? State::scarce : State::full;
}

std::uint64_t LogJournal::size_in_hand() const {
  std::uint64_t size = 0;
  for (std::size_t i = next_in_hand_; i < in_hand_.chunks.size(); ++i) {
    size += in_hand_.chunks[i].bytes.size();
  }
  return size;
}

// For what has not been appended yet.
std::uint64_t LogJournal::reserve_left() const {
  const std::uint64_t spoken_for = size_in_hand() + pending_.size() + kEndRoom;
  return segment_->space() - std::min(segment_->space(), spoken_for);
}

// For what is pending, and what will be.
void LogJournal::note_room() {
  const std::uint64_t space = is_last_runs_ ? 0 : segment_->space();
  room_.store(static_cast<std::int64_t>(space) - static_cast<std::int64_t>(size_in_hand()) -
                  std::int64_t{kEndRoom},
              std::memory_order_relaxed);
}

// Room for `size` bytes and, if there can be, for the reserve behind them.
Fault LogJournal::make_room(std::uint64_t size) {
  size += kEndRoom;
  if (is_last_runs_) return {};
  if (!segment_->has_room(size)) {
    if (is_full() && now_ns_ < space_due_ns_) return {};
    const Fault fault = segment_->make_room(size);
    if (fault.is_no_space()) return live_on_reserve(fault, size);
    if (fault) return fault;
  }
  if (is_full()) leave_full();
  return {};
}

// As much of it as can be had: when the disk was full before, a part of it may have been used.
Fault LogJournal::live_on_reserve(const Fault& fault, std::uint64_t size) {
  if (is_full()) {
    const std::uint64_t whole = size + options_.segment.reserve;
    const Fault lasting = segment_->take_space(0, whole - segment_->space());
    if (lasting && !lasting.is_no_space()) return lasting;
  }
  enter_full(fault);
  return {};
}

void LogJournal::enter_full(const Fault& fault) {
  space_due_ns_ = now_ns_ + kLookForSpaceNs;
  note_room();
  if (is_full()) return;
  why_full_ = path_of(storage_, segment_->number()) + ": " + fault.message();
  enter(State::full);
  tell_how_full();
}

void LogJournal::leave_full() {
  segment_pause_ns_ = kOpenSegmentAgainNs;
  enter(State::accepting);
  if (std::exchange(told_full_, State::accepting) == State::accepting) return;
  options_.log("journal: there is space on the disk again; locks are granted again");
  quiet_until_ns_ = now_ns_ + kQuietNs;
}

void LogJournal::look_after_space() {
  if (!is_full() || failed()) return;
  if (now_ns_ >= space_due_ns_) {
    Fault fault = is_last_runs_ ? leave_last_runs_segment() : Fault{};
    if (!fault) fault = make_room(size_in_hand());
    if (fault) return fail(fault.message());
  }
  note_room();
  if (is_full()) tell_how_full();
}

// Whenever it has become worse. A disk that is full of the journal's own past may be so many times
// a second, and in between not: that is told once in a while.
void LogJournal::tell_how_full() {
  const State now = state();
  if (now <= told_full_ || (now == State::full && now_ns_ < quiet_until_ns_)) return;
  if (told_full_ == State::accepting) {
    options_.log("journal: " + why_full_ +
                 "; locks are not granted until there is space, releases and renewals work as "
                 "long as the reserve of " +
                 std::to_string(segment_->space()) + " bytes lasts");
  }
  if (now == State::scarce) {
    options_.log(
        "journal: the reserve is almost used up: renewals are refused until there is "
        "space, releases still work");
  } else if (now == State::exhausted) {
    options_.log(
        "journal: the reserve is used up: renewals and releases are refused, and what "
        "ends by itself waits, until there is space");
  }
  told_full_ = now;
}

// Failures.

void LogJournal::enter(State state) {
  state_.store(state, std::memory_order_release);
  progress_ = true;
}

void LogJournal::fail(const std::string& why) {
  options_.log(
      "journal: " + path_of(storage_, segment_->number()) + ": " + why +
      "; nothing more is acknowledged. Repair or replace the disk, then start the server again");
  enter(State::failed);
  pending_.discard();
}

}  // namespace lockd
