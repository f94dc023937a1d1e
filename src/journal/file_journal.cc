#include "lockd/file_journal.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "journal/log_journal.h"
#include "journal/posix_storage.h"

namespace lockd {
namespace {

// Long, and short enough to be added to any time.
constexpr Duration kTurnPauseMax = std::chrono::hours(1);

LogJournalOptions log_options(const FileJournalOptions& options) {
  LogJournalOptions log{.sync_interval = options.sync_interval,
                        .segment_size = options.segment_size};
  if (options.log) log.log = options.log;
  log.segment.reserve = options.reserve_size;
  return log;
}

void check_options(const FileJournalOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw JournalError(std::string("lockd: ") + what);
  };
  require(!options.directory.empty(), "a journal needs a directory");
  require(options.sync_interval >= Duration::zero(), "sync_interval must not be negative");
  require(options.segment_size >= 1, "segment_size must be more than zero");
}

}  // namespace

// A LogJournal on a real directory, and the thread that takes its turns.
class FileJournal::Impl {
 public:
  explicit Impl(const FileJournalOptions& options)
      : storage_(options.directory, PosixStorage::Access::write),
        log_(storage_, log_options(options)),
        clock_(log_.offset_ns() - storage_.boot_offset_ns()) {}

  ~Impl() {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

  LogJournal& log() { return log_; }
  SystemClock& clock() { return clock_; }

  void start() {
    thread_ = std::thread([this] { run(); });
  }

  // A thread that is busy looks by itself before it sleeps: then this costs no more than a look.
  void commit(Position position) EXCLUDES(mutex_) {
    log_.commit(position);
    if (asleep_.load(std::memory_order_seq_cst)) wake();
  }

  void wake() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

 private:
  void run() EXCLUDES(mutex_) {
    while (sleep(log_.turn())) {
    }
    log_.close();
  }

  // False when it is time to stop.
  bool sleep(Duration longest) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    // First said, then looked: a commit in between sees the one or is seen by the other.
    asleep_.store(true, std::memory_order_seq_cst);
    if (longest > Duration::zero() && !woken_ && !stopping_ && !log_.is_wanted()) {
      changed_.wait_for(mutex_, std::min(longest, kTurnPauseMax));
    }
    asleep_.store(false, std::memory_order_relaxed);
    woken_ = false;
    return !stopping_;
  }

  PosixStorage storage_;
  LogJournal log_;
  SystemClock clock_;

  std::atomic<bool> asleep_{false};
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

std::unique_ptr<FileJournal> FileJournal::open(const FileJournalOptions& options) {
  check_options(options);
  return std::unique_ptr<FileJournal>(new FileJournal(std::make_unique<Impl>(options)));
}

FileJournal::FileJournal(std::unique_ptr<Impl> body) : impl_(std::move(body)) {}

FileJournal::~FileJournal() = default;

Clock& FileJournal::clock() const { return impl_->clock(); }

bool FileJournal::recover(const std::function<void(const Event&)>& apply) {
  const bool found = impl_->log().recover(apply);
  impl_->start();
  return found;
}

Position FileJournal::append(std::span<const Event> events) { return impl_->log().append(events); }

void FileJournal::commit(Position position) {
  if (position <= durable()) return;
  impl_->commit(position);
}

Position FileJournal::durable() const noexcept { return impl_->log().durable(); }

Journal::State FileJournal::state() const noexcept { return impl_->log().state(); }

bool FileJournal::is_behind() const noexcept { return impl_->log().is_behind(); }

Duration FileJournal::storage_wait() const noexcept { return impl_->log().storage_wait(); }

Histogram FileJournal::sync_time() const noexcept { return impl_->log().sync_time(); }

void FileJournal::attach(Source* source) {
  impl_->log().attach(source);
  impl_->wake();
}

}  // namespace lockd
