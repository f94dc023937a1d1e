// A journal in a directory of files: what the engine was told is there after a crash.
//
//   auto journal = lockd::FileJournal::open({.directory = "/var/lib/shop/reservations"});
//   lockd::Engine engine({.clock = &journal->clock(), .journal = journal.get()});
//
// The journal outlives the engine. The engine takes its time from the journal's clock, which goes
// on where the last run stopped: leases that were held have exactly what remains of them, whatever
// was done to the wall clock (see docs/journal_format.md, "Time").
//
// What is promised, with sync_interval zero (the default): whatever a call has answered is in force
// after any crash, of the process or of the machine. With an interval: after a crash of the process
// likewise; after a crash of the machine (or loss of power) what was answered in the last interval
// may be undone, but no fence is ever granted twice.
//
// One thread of its own writes and syncs for everybody. A write or a sync that fails is final: the
// state is `failed`, nothing more is acknowledged, and only a new process that recovers goes on.
// When the disk is full the state is `full`; as the space kept in reserve is used up, `scarce` and
// `exhausted`. That passes when there is space again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockd/clock.h"
#include "lockd/histogram.h"
#include "lockd/journal.h"

namespace lockd {

// Why a journal cannot be opened: which file, which byte, and what can be done about it.
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FileJournalOptions {
  std::string directory;     // made if it is not there; its owner's alone: 0700
  Duration sync_interval{};  // zero: every answer waits for the disk
  // What an operator should read: a tail that was cut, a disk that is full, a failure. Called on
  // the thread that opens or recovers, and on the journal's own; one call at a time.
  std::function<void(std::string_view)> log{};

  // A segment that is larger than this, and than three times the last snapshot of all there is, is
  // followed by a new one, and by a new snapshot.
  std::uint64_t segment_size = std::uint64_t{16} << 20;
  // Space kept for releases, renewals and expiries when the disk is full.
  std::uint64_t reserve_size = std::uint64_t{1} << 20;
};

class FileJournal final : public Journal {
 public:
  // Reads and checks all that is there, cuts off a torn tail, and takes the directory for this
  // process. Throws JournalError when it is damaged, in use, or cannot be read or written.
  static std::unique_ptr<FileJournal> open(const FileJournalOptions& options);
  ~FileJournal() override;

  // The time that the engine must be given.
  Clock& clock() const;

  bool recover(const std::function<void(const Event&)>& apply) override;
  Position append(std::span<const Event> events) override;
  void commit(Position position) override;
  Position durable() const noexcept override;
  State state() const noexcept override;
  bool is_behind() const noexcept override;
  Duration storage_wait() const noexcept override;
  void attach(Source* source) override;

  // How many syncs there were, and how long they took. Any thread may ask.
  Histogram sync_time() const noexcept;

 private:
  class Impl;

  explicit FileJournal(std::unique_ptr<Impl> body);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockd
