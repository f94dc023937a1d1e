// FileJournal: durable storage for an engine, in a directory of files.
//
//   auto journal = lockd::FileJournal::open({.directory = "/var/lib/shop/reservations"});
//   lockd::Engine engine({.clock = &journal->clock(), .journal = journal.get()});
//
// The journal must outlive the engine. The engine must use the journal's clock, which continues
// where the last run stopped: after a restart each lease has exactly its remaining time, regardless
// of changes to the wall clock (see docs/journal_format.md, "Time").
//
// Durability: with sync_interval zero (the default), every acknowledged result survives a crash of
// the process or the machine. With an interval, every acknowledged result survives a crash of the
// process; a crash of the machine or a power failure may lose the results of the last interval, but
// no fence is ever granted twice.
//
// One thread writes and syncs. A failed write or sync is final: the state becomes `failed`, the
// journal acknowledges nothing more, and only a new process can recover. A full disk makes the
// state `full`, then `scarce` and `exhausted` as the reserve is used up, until space is available
// again.
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

// Why a journal cannot be opened: the file, the byte, and a remedy.
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FileJournalOptions {
  std::string directory;     // created with mode 0700 if missing
  Duration sync_interval{};  // zero: every answer waits for the disk
  // Receives messages for the operator: a torn tail, a full disk, a failure. Called by the thread
  // that opens or recovers, and by the journal's own; one call at a time.
  std::function<void(std::string_view)> log{};

  // The journal starts a new segment and writes a snapshot when the segment is larger than this and
  // than three times the last snapshot.
  std::uint64_t segment_size = std::uint64_t{16} << 20;
  // Space reserved for releases, renewals and expiries on a full disk.
  std::uint64_t reserve_size = std::uint64_t{1} << 20;
};

class FileJournal final : public Journal {
 public:
  // Reads and verifies the journal, truncates a torn tail, and locks the directory. Throws
  // JournalError if the journal is damaged, in use, or cannot be read or written.
  static std::unique_ptr<FileJournal> open(const FileJournalOptions& options);
  ~FileJournal() override;

  // For EngineOptions::clock.
  Clock& clock() const;

  bool recover(const std::function<void(const Event&)>& apply) override;
  Position append(std::span<const Event> events) override;
  void commit(Position position) override;
  Position durable() const noexcept override;
  State state() const noexcept override;
  bool is_behind() const noexcept override;
  Duration storage_wait() const noexcept override;
  void attach(Source* source) override;

  // Durations of all syncs. Thread-safe.
  Histogram sync_time() const noexcept;

 private:
  class Impl;

  explicit FileJournal(std::unique_ptr<Impl> body);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockd
