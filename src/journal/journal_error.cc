#include "journal/journal_error.h"

#include <utility>

#include "journal/format.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenReports = 3s;
constexpr std::uint64_t kBetweenLooks = std::uint64_t{1} << 20;

std::string in_mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::string path_of(const Storage& storage, std::uint64_t segment) {
  return storage.directory() + "/" + segment_name(segment);
}

void refuse_damage(const Storage& storage, std::uint64_t segment, std::uint64_t offset,
                   const std::string& what) {
  throw JournalError(path_of(storage, segment) + ", byte " + std::to_string(offset) + ": " + what +
                     "; the journal is damaged, and to go on would forget what was acknowledged. "
                     "Restore the directory from a copy, or move it away to begin anew: then "
                     "nothing is held, and fences begin at 1. Either way let the longest lease in "
                     "use end first, and start with --fence-floor above every fence that was "
                     "granted");
}

void refuse_fault(const std::string& path, const Fault& fault) {
  throw JournalError(path + ": " + fault.message() +
                     (fault.is_no_space() ? "; free some space and start again" : ""));
}

Progress::Progress(const Log& log, std::string doing, std::uint64_t total)
    : log_(log), doing_(std::move(doing)), total_(total), next_(Clock::now() + kBetweenReports) {}

void Progress::advance(std::uint64_t bytes) {
  done_ += bytes;
  if (done_ - looked_at_ < kBetweenLooks) return;
  looked_at_ = done_;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenReports;
  log_("journal: " + doing_ + ", " + in_mib(done_) + " of " + in_mib(total_));
}

}  // namespace lockd
