#include "replication/chain_export.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "journal/log_journal.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr FollowerOptions kPatient{
    .rpc = std::chrono::seconds(5), .retry = std::chrono::milliseconds(200), .page = 16};
// How often it may be thrown back, as by a compaction of what it is about to read.
constexpr int kLossesMax = 5;
// A refusal may pass, as when etcd's users are being changed, but seldom does.
constexpr Duration kRefusalMax = std::chrono::seconds(2);
// How much of a journal is written at once.
constexpr std::size_t kWriteSize = std::size_t{1} << 20;

}  // namespace

ChainExport::ChainExport(etcd::Client& client, const Clock& clock, ChainExportOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.cluster),
      errors_([this](Severity severity, std::string_view line) {
        complaint_ = line;
        options_.log(severity, line);
      }),
      progressed_(clock.now()) {
  begin();
}

void ChainExport::begin() {
  follower_.reset();
  state_.emplace(options_.fence_floor);
  follower_.emplace(client_, keys_, kPatient, stats_, errors_);
}

Duration ChainExport::turn() {
  if (done_ || !error_.empty()) return Duration::max();
  const Time now = clock_.now();
  const Time next = follower_->turn(now, [&](const Event& event) {
    Event here = event;
    here.expires_at = now + (event.expires_at - Time{});
    return state_->apply(here);
  });
  if (follower_->is_current()) take_up();
  const bool lost = !follower_->lost().empty();
  if (lost) take_loss();
  if (done_ || !error_.empty()) return Duration::max();
  if (lost) return Duration::zero();

  const auto revision = static_cast<std::uint64_t>(follower_->revision());
  const std::uint64_t progress = revision + follower_->size_followed();
  if (std::exchange(progress_, progress) != progress) progressed_ = now;
  const Time latest = progressed_ + (follower_->is_refused() ? kRefusalMax : kCopySilenceMax);
  if (now >= latest) {
    error_ = follower_->is_refused()
                 ? complaint_
                 : "etcd has not answered for 30 seconds" +
                       (complaint_.empty() ? "" : "; the last of it: " + complaint_);
  }
  return std::min(next, latest) > now ? std::min(next, latest) - now : Duration::zero();
}

// It has applied everything up to the head, as that was at one revision.
void ChainExport::take_up() {
  revision_ = follower_->revision();
  done_ = !follower_->last_batch().is_none();
  follower_->stop();
  if (!done_) {
    error_ = "etcd has no chain of a cluster " + options_.cluster + ": nothing under " +
             keys_.prefix + " says what is held";
  }
}

void ChainExport::take_loss() {
  const std::string why = follower_->lost();
  if (follower_->is_unreadable() || ++losses_ == kLossesMax) {
    error_ = "the chain of cluster " + options_.cluster + " cannot be read: " + why;
    return;
  }
  options_.log(Severity::info, "cluster: " + why + "; it is read anew");
  begin();
}

StateSummary ChainExport::write(Storage& storage) {
  std::string complaint = "it is not all on the disk";
  LogJournalOptions options;
  options.log = [&](std::string_view line) { complaint = line; };
  options.segment = {.reserve = 0, .step_min = 0};  // nothing more is written into it
  options.behind_from = kWriteSize;
  LogJournal journal(storage, options);
  journal.recover([](const Event&) {});

  // Both clocks are CLOCK_BOOTTIME and something. Read in this order, no deadline becomes earlier.
  const Time here = clock_.now();
  const Duration shift = journal.now() - here;
  StateSummary summary;
  Position end = 0;
  std::vector<Event> shifted;
  const HeldState::Take take = [&](std::span<const Event> events) {
    shifted.assign(events.begin(), events.end());
    for (Event& event : shifted) {
      event.expires_at = event.expires_at + shift;
      summary.add(event);
    }
    end = journal.append(shifted);
  };
  for (bool first = true; state_->describe_some(std::exchange(first, false), take);) {
    if (journal.is_behind()) journal.flush();
  }
  journal.close();
  if (journal.durable() < end) throw JournalError(complaint);
  return summary;
}

}  // namespace lockd
