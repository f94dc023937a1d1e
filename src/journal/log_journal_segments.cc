// How segments follow one another, and how a snapshot makes the older ones needless.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "journal/log_journal.h"

namespace lockd {
namespace {

constexpr std::uint64_t kOpenSegmentAgainNs = 1'000'000'000;

// A segment may become this many times as long as the snapshot it began with.
constexpr std::uint64_t kAccountsPerSegment = 3;

// How much of a snapshot is written in one turn while somebody waits for it.
constexpr std::size_t kDescribeBusy = std::size_t{64} << 10;

}  // namespace

// Seals what was recovered, and opens a segment of this run's own.
Fault LogJournal::begin() {
  std::uint64_t number = 1;
  if (!survey_.is_new()) {
    const SegmentSummary& last = survey_.segments.back();
    number = last.number() + 1;
    std::unique_ptr<StorageFile> file;
    if (const Fault fault = storage_.open(segment_name(last.number()), &file)) return fault;
    segment_ = std::make_unique<SegmentWriter>(std::move(file), last.number(), last.end_offset,
                                               last.size, options_.segment);
  }
  std::unique_ptr<SegmentWriter> next;
  const Fault fault = SegmentWriter::create(storage_, next_header(number), options_.segment, &next);
  if (fault) return fault;
  if (!survey_.is_new()) {
    if (const Fault unsealed = seal()) return unsealed;
    older_ = survey_.older;
    for (const SegmentSummary& segment : survey_.segments) older_.push_back(segment.number());
    account_ = Account::begun;
  }
  segment_ = std::move(next);
  return {};
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
  char bytes[kFrameHeaderSize];
  FrameHeader last = frame(synced_);
  last.seals = true;
  if (const Fault fault = segment_->write(last, bytes)) return fault;
  return segment_->sync();
}

// A snapshot goes on between the commits. When nobody waits it may go `describe_ahead`; otherwise a
// little, but never less than everybody else has appended: it would fall behind, and the log grow.
void LogJournal::describe_some() {
  MutexLock lock(source_mutex_);
  has_source_ = source_ != nullptr;
  if (!has_source_ || (account_ != Account::begun && account_ != Account::goes_on)) return;
  if (state_.load(std::memory_order_relaxed) != State::accepting) return;
  const std::size_t as_much_again = 2 * pending_.size();
  const std::size_t idle = std::max(options_.describe_ahead, as_much_again);
  const std::size_t busy = std::min(idle, std::max(kDescribeBusy, as_much_again));
  do {
    const bool more = source_->describe_some(account_ == Account::begun);
    account_ = more ? Account::goes_on : Account::to_close;
  } while (account_ == Account::goes_on && pending_.size() < (is_wanted() ? busy : idle));
}

// The snapshot is durable: what came before it is of no use any more.
void LogJournal::finish_account() {
  account_ = Account::none;
  account_size_ = segment_->offset();
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
      std::max(options_.segment_size, kAccountsPerSegment * account_size_);
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
  account_ = Account::begun;
}

// Without space for a new segment the old one serves a while longer.
void LogJournal::give_up_next_segment(const Fault& fault) {
  if (!fault.is_no_space()) return fail(fault.message());
  const std::string name = segment_name(segment_->number() + 1);
  const Fault kept = storage_.remove(name);
  if (kept && kept.error != ENOENT) return fail(kept.message());
  if (const Fault unsynced = storage_.sync_directory()) return fail(unsynced.message());
  segment_due_ns_ = now_ns_ + kOpenSegmentAgainNs;
  options_.log("journal: no space for a new segment (" + fault.message() +
               "); the log goes on growing until there is");
}

}  // namespace lockd
