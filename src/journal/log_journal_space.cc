// A journal whose disk is full: what it has room for, and how it comes by more.
#include <algorithm>
#include <string>
#include <utility>

#include "journal/log_journal.h"

namespace lockd {
namespace {

constexpr std::uint64_t kQuietNs = 60'000'000'000;

// Renewals leave this part of the reserve to releases, and releases leave that one.
constexpr std::int64_t kReservePerScarce = 4;
constexpr std::int64_t kReservePerExhausted = 64;

}  // namespace

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

}  // namespace lockd
