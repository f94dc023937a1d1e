// Copies between the chain of a cluster in etcd and a journal in files.
//
// ChainExport writes the holds of a chain as a new journal: a backup, or the journal of a server
// without a cluster. It follows the chain as a standby does, up to the head, and only reads from
// etcd.
//
// ChainImport puts the holds of a journal into etcd as the chain of a new cluster. It puts the
// leader's key, as an elected server does, and guarded by that the batches. Readers ignore them,
// because there is no head; a base behind all of them lets the chain of another server skip them
// after a crash. The last transaction puts the base before the first batch and the head at the last
// one, and erases the leader's key. docs/high_availability.md proves this.
//
// Neither has a thread or blocks: callbacks of the client update members, and turn() acts on them.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "journal/append_buffer.h"
#include "journal/recovery.h"
#include "journal/storage.h"
#include "lockd/clock.h"
#include "lockd/engine.h"
#include "replication/follower.h"
#include "replication/replication_context.h"

namespace lockd {

// Counts described events.
struct StateSummary {
  std::uint64_t holds = 0;
  std::uint64_t semaphore_holds = 0;  // included in `holds`
  Fence largest_fence = 0;            // largest that may have been granted

  void add(const Event& event) {
    largest_fence = std::max(largest_fence, event.fence);
    if (event.type != Event::Type::granted) return;
    ++holds;
    semaphore_holds += event.kind == Kind::semaphore ? 1 : 0;
  }
};

// Rebuilds the holds from the events of a journal or a chain, and describes them as events again.
// It is an engine that follows. Its clock stays at zero, so deadlines are returned as they were
// applied.
class HeldState final : private Journal {
 public:
  using Sink = std::function<void(std::span<const Event>)>;

  // The described state forbids fences up to and including `floor`.
  explicit HeldState(Fence floor)
      : engine_({.shards = 1,
                 .fence_floor = floor,
                 .clock = &clock_,
                 .journal = this,
                 .sweeper = false}) {}

  // False if the event contradicts the ones before.
  bool apply(const Event& event) { return source_->apply(event); }

  // Describes the next few hundred keys; at the end the fence floor, which covers keys without
  // holders. Returns false at the end.
  bool describe_some(bool from_start, const Sink& sink) {
    sink_ = &sink;
    return source_->describe_some(from_start);
  }

 private:
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override {
    (*sink_)(events);
    return 0;
  }
  void commit(Position) override {}
  Position durable() const noexcept override { return 0; }
  State state() const noexcept override { return State::following; }
  void attach(Source* source) override { source_ = source; }

  ManualClock clock_{Time{}};
  Source* source_ = nullptr;
  const Sink* sink_ = nullptr;
  Engine engine_;  // last: it uses the members above
};

struct ChainCopyOptions {
  std::string cluster;
  std::string name{};  // of an import; random and unique
  Fence fence_floor = 0;
  std::size_t batch_max = std::size_t{256} << 10;
  ClusterLog log = [](Severity, std::string_view) {};
};

class ChainCopy {
 public:
  bool is_done() const { return is_done_; }
  // Why the copy failed; empty unless it did.
  const std::string& error() const { return error_; }

 protected:
  ChainCopy(etcd::Client& client, const Clock& clock, const ChainCopyOptions& options);

  bool is_over() const { return is_done_ || !error_.empty(); }
  void fail(const std::string& why) { error_ = why; }
  void fail_silent(const std::string& consequence);

  const Clock& clock_;
  const ChainCopyOptions options_;
  ReplicationStats stats_;
  std::string last_error_;  // etcd's
  ReplicationContext context_;
  Time progressed_;
  bool is_done_ = false;

 private:
  std::string error_;
};

class ChainExport : public ChainCopy {
 public:
  // `client` and `clock` outlive it.
  ChainExport(etcd::Client& client, const Clock& clock, const ChainCopyOptions& options);

  // Takes the next step, and returns after how long to call again unless etcd answers before.
  Duration turn();
  // When the whole chain has been read: etcd's revision at which it was.
  etcd::Revision revision() const { return revision_; }
  // Writes a new journal of one segment, and syncs it. A lease keeps the time that was left of it
  // when it was read. Throws JournalError.
  StateSummary write(Storage& storage);

 private:
  void begin();
  void finish();

  std::optional<HeldState> state_;
  std::optional<Follower> follower_;
  int failures_ = 0;
  std::uint64_t progress_ = 0;
  etcd::Revision revision_ = 0;
};

// Reads a journal in files, without modifying it, and describes its holds as batches.
class JournalReader {
 public:
  // Locks the storage. Throws JournalError if the journal is missing, in use or damaged.
  JournalReader(Storage& storage, const ChainCopyOptions& options);

  // The current time by the clock of the journal's deadlines.
  Time now();
  // The next batch; nothing at the end.
  std::optional<Chunk> next();
  const StateSummary& summary() const { return summary_; }

 private:
  Storage& storage_;
  const std::size_t batch_max_;
  LogScan scan_;
  HeldState state_;
  AppendBuffer buffer_;
  std::deque<Chunk> queue_;
  bool described_any_ = false;
  bool described_all_ = false;
  StateSummary summary_;
};

class ChainImport : public ChainCopy {
 public:
  // Reads the journal: see JournalReader. All references outlive the import.
  ChainImport(etcd::Client& client, const Clock& clock, Storage& storage,
              const ChainCopyOptions& options);

  // Takes the next step, and returns after how long to call again unless etcd answers before.
  Duration turn();
  const StateSummary& summary() const { return journal_.summary(); }

 private:
  enum class Step : std::uint8_t { look, claim, write, finish };

  void send(Time now);
  etcd::Txn next_txn() const;
  void on_answer(const etcd::Answer& answer);
  void on_look(const etcd::Answer& answer);
  void on_finish(const etcd::Answer& answer);
  void prepare_batch();
  void fail_overtaken();
  // The import's first batch, and the first place behind all of its batches.
  BatchId first() const { return {last_.epoch, 0}; }
  BatchId behind_all() const { return {last_.epoch + 1, 0}; }

  const LeaderRecord self_;
  JournalReader journal_;
  Step step_ = Step::look;
  bool in_flight_ = false;
  Time next_try_{};
  bool claimed_ = false;            // a claim was sent
  etcd::Revision seen_leader_ = 0;  // put by an unfinished import; 0: there is none
  BatchId last_{};                  // the last batch prepared, ...
  std::string batch_;               // ... and its bytes
};

}  // namespace lockd
