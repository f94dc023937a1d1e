#include "etcd/etcd_journal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/secret.h"

namespace lockd {
namespace {

constexpr Duration kSleepMax = std::chrono::hours(1);
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

ReplicatedJournalOptions with_own_incarnation(ReplicatedJournalOptions options) {
  TokenSource source;
  options.self.incarnation = std::to_string(source.next()) + "-" + std::to_string(source.next());
  options.seed = source.next();
  return options;
}

}  // namespace

class EtcdJournal::Impl {
 public:
  explicit Impl(EtcdJournalOptions options)
      : read_again_(std::move(options.read_again)),
        etcd_(options.etcd),
        journal_(etcd_, clock_, with_own_incarnation(std::move(options.replication))) {}

  ~Impl() {
    if (!thread_.joinable()) return;
    resign();
    thread_.join();
  }

  ReplicatedJournal& journal() { return journal_; }
  const ReplicatedJournal& journal() const { return journal_; }
  SystemClock& clock() { return clock_; }

  void start() {
    thread_ = std::thread([this] { run(); });
  }

  // While a batch is on its way there is nothing to be woken for: its answer will.
  void commit() {
    if (journal_.waiting() >= wakes_at_.load(std::memory_order_seq_cst)) etcd_.wake();
  }

  void resign() {
    journal_.resign();
    etcd_.wake();
  }

  ClusterStatus status() EXCLUDES(mutex_) {
    const Time now = clock_.now();
    MutexLock lock(mutex_);
    ClusterStatus status = status_;
    std::erase_if(status.members, [&](const Member& member) {
      return now > member.last_seen + Membership::kSilenceMax;
    });
    status.certain = status.leads && journal_.is_certain();
    status.not_ready = why_not_ready(status, now);
    return status;
  }

  void wake() { etcd_.wake(); }

  std::string reload() {
    if (!read_again_) return {};
    try {
      etcd_.renew(read_again_());
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }

 private:
  // Until the journal is over, which is at the latest when it has resigned.
  void run() {
    while (journal_.over().empty()) {
      const Duration next = journal_.turn();
      show_status();
      // First said, then looked: a commit in between sees the one or is seen by the other.
      const std::size_t wanted = journal_.wanted();
      wakes_at_.store(wanted, std::memory_order_seq_cst);
      const bool more = journal_.waiting() >= wanted;
      etcd_.run(more ? Duration::zero() : std::min(next, kSleepMax));
      wakes_at_.store(kNever, std::memory_order_relaxed);
    }
    journal_.turn();  // tells the engine that it is over
    show_status();
  }

  void show_status() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    status_ = journal_.status();
  }

  const std::function<GrpcEtcdOptions()> read_again_;
  SystemClock clock_;
  GrpcEtcd etcd_;
  ReplicatedJournal journal_;
  std::atomic<std::size_t> wakes_at_{kNever};  // so many wait

  Mutex mutex_;
  ClusterStatus status_ GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all of the above
};

EtcdJournal::EtcdJournal(EtcdJournalOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

EtcdJournal::~EtcdJournal() = default;

Clock& EtcdJournal::clock() const { return impl_->clock(); }

bool EtcdJournal::recover(const std::function<void(const Event&)>& apply) {
  return impl_->journal().recover(apply);
}

Position EtcdJournal::append(std::span<const Event> events) {
  return impl_->journal().append(events);
}

void EtcdJournal::commit(Position) { impl_->commit(); }

Position EtcdJournal::durable() const noexcept { return impl_->journal().durable(); }

Journal::State EtcdJournal::state() const noexcept { return impl_->journal().state(); }

bool EtcdJournal::is_behind() const noexcept { return impl_->journal().is_behind(); }

void EtcdJournal::attach(Source* source) {
  impl_->journal().attach(source);
  if (source != nullptr) return impl_->start();
  impl_->wake();
}

void EtcdJournal::resign() { impl_->resign(); }

bool EtcdJournal::transfer(const std::string& node) {
  const bool leads = impl_->journal().transfer(node);
  impl_->wake();
  return leads;
}

bool EtcdJournal::begin_snapshot() {
  const bool leads = impl_->journal().begin_snapshot();
  impl_->wake();
  return leads;
}

bool EtcdJournal::is_cut_off() const noexcept { return impl_->journal().is_cut_off(); }

std::string EtcdJournal::reload() { return impl_->reload(); }

ClusterStatus EtcdJournal::status() const { return impl_->status(); }

const ReplicationStats& EtcdJournal::stats() const { return impl_->journal().stats(); }

}  // namespace lockd
