// The journal on any Storage, without a thread: somebody calls turn().
//
// Its life: the constructor scans and repairs what is there; recover() replays it, seals it and
// opens a new segment; then any thread appends, and one thread at a time calls turn(), which writes
// and syncs what has been appended since. So a simulation drives it step by step on a disk of its
// own, and FileJournal by a thread.
//
// A turn:
//   1. has the engine describe some more of itself, if a new snapshot is being written;
//   2. takes what is pending, writes it, syncs, looks whether the file is still there, and
//      publishes durable();
//   3. if that ended the snapshot, removes the older segments;
//   4. when the disk is full, looks whether it has room again;
//   5. if the segment has become long, opens the next and begins a new snapshot.
//
// A full disk is a state that passes. It lives on the space that its segment has taken and not
// used, the reserve: it grants nothing then, refuses renewals when a quarter of the reserve is
// left, and releases when next to nothing is. What ends by itself, by a lease or with a session, is
// no more than what was granted before: when there is no room for it, it waits in memory, and
// nobody is told. Meanwhile a snapshot that fits is written into the reserve: it frees what came
// before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "journal/append_buffer.h"
#include "journal/journal_error.h"
#include "journal/recovery.h"
#include "journal/segment_writer.h"
#include "journal/storage.h"
#include "lockd/histogram.h"
#include "lockd/journal.h"

namespace lockd {

struct LogJournalOptions {
  Duration sync_interval{};  // zero: durable() is what has been synced
  Log log = [](std::string_view) {};
  std::uint64_t segment_size = std::uint64_t{16} << 20;
  SegmentWriterOptions segment{};
  std::size_t describe_ahead = std::size_t{1} << 20;  // of a snapshot, in one turn
  std::size_t pending_max = std::size_t{64} << 20;
  std::size_t behind_from = std::size_t{16} << 20;  // of what is pending
  std::optional<JournalId> id{};                    // of a new journal; otherwise random
};

class LogJournal final : public Journal {
 public:
  // Throws JournalError. `storage` outlives it.
  LogJournal(Storage& storage, LogJournalOptions options);
  ~LogJournal() override;

  // The engine's time now: it goes on from the last run's.
  Time now() const;
  // The same, less the storage's boot_ns. A clock for the engine must have no other: a lease that
  // was given by one clock and ends by another ends early or late by their difference.
  std::uint64_t offset_ns() const { return offset_ns_; }

  // Throws JournalError.
  bool recover(const std::function<void(const Event&)>& apply) override;
  Position append(std::span<const Event> events) override { return pending_.append(events); }
  void commit(Position position) override;
  Position durable() const noexcept override { return durable_.load(std::memory_order_acquire); }
  State state() const noexcept override;
  bool is_behind() const noexcept override { return pending_.is_behind(); }
  Duration storage_wait() const noexcept override;
  void attach(Source* source) override EXCLUDES(source_mutex_);

  // Does what there is to do. Returns how long it may be until the next; zero if there is more to
  // do at once, Duration::max() if nothing but a commit calls for one.
  Duration turn() EXCLUDES(source_mutex_);
  // Makes durable all that has been appended, whatever the interval.
  void flush() EXCLUDES(source_mutex_);
  // Does so for the last time, and vouches for it: an empty frame behind it says that it was
  // synced, so that damage to what was written last can be told from a write that was interrupted.
  void close() EXCLUDES(source_mutex_);
  // How long syncs have taken. Any thread may ask.
  Histogram sync_time() const noexcept { return sync_time_.read(); }
  // Whether a commit waits for a turn. Any thread may ask.
  bool is_wanted() const noexcept {
    return wanted_.load(std::memory_order_seq_cst) > written_.load(std::memory_order_seq_cst) &&
           state_.load(std::memory_order_relaxed) != State::failed &&
           !waits_for_room_.load(std::memory_order_relaxed);
  }

 private:
  // What is being done about the segments.
  enum class SnapshotStep : std::uint8_t {
    none,      // the present segment, with those before it, tells everything
    begun,     // the engine is about to describe itself into the present segment
    goes_on,   // it has described some
    to_close,  // it has described all; the next frame says so
  };

  static constexpr std::uint64_t kLookForSpaceNs = 100'000'000;
  static constexpr std::uint64_t kOpenSegmentAgainNs = 1'000'000'000;
  // What is left in a segment for its last two frames: one that closes it, and a seal.
  static constexpr std::uint64_t kEndRoom = 2 * kFrameHeaderSize;

  // Segments and snapshots.
  Fault begin();
  Fault leave_last_runs_segment();
  bool has_clock_of(const SegmentSummary& segment) const;
  SegmentHeader next_header() const;
  Fault open_next();
  Fault open_next_in_reserve(std::uint64_t size);
  Fault enter_segment(std::unique_ptr<SegmentWriter>& next);
  Fault seal();
  Fault write_empty(const FrameHeader& header);
  void describe_some() EXCLUDES(source_mutex_);
  void describe_into_reserve() REQUIRES(source_mutex_);
  void finish_snapshot();
  void rotate() EXCLUDES(source_mutex_);
  bool is_long() EXCLUDES(source_mutex_);
  void give_up_next_segment(const Fault& fault);
  Fault remove_next_segment();

  void write_pending();
  bool take();
  Fault write_in_hand();
  FrameHeader frame(Position position) const;
  Fault sync();
  bool must_sync() const;
  void publish(Position position);

  // Space.
  bool has_in_hand() const { return next_in_hand_ < in_hand_.chunks.size(); }
  std::uint64_t size_in_hand() const;
  std::uint64_t reserve_left() const;
  Fault make_room(std::uint64_t size);
  void note_room();
  Fault live_on_reserve(const Fault& fault, std::uint64_t size);
  void enter_full(const Fault& fault);
  void leave_full();
  void look_after_space();
  void tell_how_full();
  void enter(State state);
  void fail(const std::string& why);
  void tell_progress() EXCLUDES(source_mutex_);
  Duration until_next_turn() const;
  void end_storage_wait();

  bool syncs_always() const { return options_.sync_interval == Duration::zero(); }
  bool failed() const { return state_.load(std::memory_order_relaxed) == State::failed; }
  bool is_full() const { return state_.load(std::memory_order_relaxed) == State::full; }

  Storage& storage_;
  const LogJournalOptions options_;
  LogScan scan_;  // of what was there; its memory goes when it has been replayed
  JournalId id_{};
  // Engine time less CLOCK_BOOTTIME; the subtraction may wrap, the addition wraps it back.
  std::uint64_t offset_ns_ = 0;

  std::atomic<Position> durable_{0};
  std::atomic<Position> written_{0};
  std::atomic<Position> wanted_{0};
  std::atomic<std::uint64_t> turn_began_ns_{0};  // CLOCK_BOOTTIME; 0: no turn is under way
  std::atomic<State> state_{State::accepting};   // `full` to whatever degree
  std::atomic<std::int64_t> room_{0};            // when full: for what is pending, and more
  std::atomic<bool> waits_for_room_{false};      // what was taken: a turn will find no more
  AppendBuffer pending_;
  SharedHistogram sync_time_;

  // The turn's alone.
  std::unique_ptr<SegmentWriter> segment_;
  bool is_last_runs_ = false;  // the segment: there was no space for one of this run's own
  AppendBuffer::Taken in_hand_;
  std::size_t next_in_hand_ = 0;      // chunk to be written
  bool in_hand_completes_ = false;    // the snapshot
  std::vector<std::uint64_t> older_;  // segments that go when the snapshot is complete
  SnapshotStep snapshot_ = SnapshotStep::none;
  std::uint64_t snapshot_size_ = 0;  // of the last one
  Position synced_ = 0;
  bool has_source_ = false;
  bool progress_ = false;             // durable() or state() has changed since it was last told
  std::uint64_t now_ns_ = 0;          // CLOCK_BOOTTIME, at the beginning of the turn
  std::uint64_t sync_due_ns_ = 0;     // with an interval, when something is written and not synced
  std::uint64_t space_due_ns_ = 0;    // look again for space, when full
  std::uint64_t segment_due_ns_ = 0;  // try again to open a segment
  std::uint64_t segment_pause_ns_ = kOpenSegmentAgainNs;  // and how long after one that failed
  bool lacks_segment_ = false;          // the last try failed, and the log says so
  State told_full_ = State::accepting;  // how full, as the log says
  std::string why_full_;
  std::uint64_t quiet_until_ns_ = 0;  // of being full and soon no more the log says nothing

  Mutex source_mutex_;  // held while the engine is called, so that taking it back waits
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
