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
// The number of failed attempts, as by a compaction of revisions that are still unread.
constexpr int kLossesMax = 5;
// A refusal is rarely temporary, as while etcd's users are being changed.
constexpr Duration kRefusalMax = std::chrono::seconds(2);
// The journal is flushed after this many bytes.
constexpr std::size_t kWriteSize = std::size_t{1} << 20;

}  // namespace

ChainExport::ChainExport(etcd::Client& client, const Clock& clock, ChainExportOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.cluster),
      errors_([this](Severity severity, std::string_view line) {
        last_error_ = line;
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
  if (follower_->is_current()) finish();
  const bool lost = !follower_->lost().empty();
  if (lost) on_loss();
  if (done_ || !error_.empty()) return Duration::max();
  if (lost) return Duration::zero();

  const auto revision = static_cast<std::uint64_t>(follower_->revision());
  const std::uint64_t progress = revision + follower_->size_followed();
  if (std::exchange(progress_, progress) != progress) progressed_ = now;
  const Time latest = progressed_ + (follower_->is_refused() ? kRefusalMax : kCopySilenceMax);
  if (now >= latest) {
    error_ = follower_->is_refused()
                 ? last_error_
                 : "etcd has not answered for 30 seconds" +
                       (last_error_.empty() ? "" : "; the last of it: " + last_error_);
  }
  return std::min(next, latest) > now ? std::min(next, latest) - now : Duration::zero();
}

// The follower has applied everything up to the head, all read at one revision.
void ChainExport::finish() {
  revision_ = follower_->revision();
  done_ = !follower_->last_batch().is_none();
  follower_->stop();
  if (!done_) {
    error_ = "etcd has no chain of a cluster " + options_.cluster + ": there is no batch under " +
             keys_.prefix;
  }
}

void ChainExport::on_loss() {
  const std::string why = follower_->lost();
  if (follower_->is_unreadable() || ++losses_ == kLossesMax) {
    error_ = "the chain of cluster " + options_.cluster + " cannot be read: " + why;
    return;
  }
  options_.log(Severity::info, "cluster: " + why + "; the chain is read again from its beginning");
  begin();
}

StateSummary ChainExport::write(Storage& storage) {
  std::string complaint = "the journal is not completely on the disk";
  LogJournalOptions options;
  options.log = [&](std::string_view line) { complaint = line; };
  options.segment = {.reserve = 0, .step_min = 0};  // nothing is appended later
  options.behind_from = kWriteSize;
  LogJournal journal(storage, options);
  journal.recover([](const Event&) {});

  // Both clocks are CLOCK_BOOTTIME plus a constant. In this order no deadline becomes earlier.
  const Time here = clock_.now();
  const Duration shift = journal.now() - here;
  StateSummary summary;
  Position end = 0;
  std::vector<Event> shifted;
  const HeldState::Sink sink = [&](std::span<const Event> events) {
    shifted.assign(events.begin(), events.end());
    for (Event& event : shifted) {
      event.expires_at = event.expires_at + shift;
      summary.add(event);
    }
    end = journal.append(shifted);
  };
  for (bool first = true; state_->describe_some(std::exchange(first, false), sink);) {
    if (journal.is_behind()) journal.flush();
  }
  journal.close();
  if (journal.durable() < end) throw JournalError(complaint);
  return summary;
}

}  // namespace lockd
