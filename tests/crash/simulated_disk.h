// A directory on a disk that promises no more than Storage says.
//
// It has two planes. What readers see is volatile; what a sync of the file (bytes and size) or of
// the directory (names) has covered is durable. When the power fails, each sector that was written
// since, each size and each name takes, on its own, any of the versions it has had since it was
// last durable: so writes are torn and reordered, a file can be there without its bytes, and a
// removed one come back. When only the process dies, a copy of the disk is what the next one finds:
// everything can be read, and the power may still fail.
//
// After a failed sync the sectors it should have written can be read, but no later sync makes them
// durable unless they are written again: so it is with a page cache.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/chance.h"
#include "journal/storage.h"
#include "lockd/types.h"

namespace lockd::crash {

using Files = std::map<std::string, std::string>;

// Decides what survives a power failure.
class Survival {
 public:
  // One of all the ways, by its number: 0 keeps only what is durable, the last all that was seen.
  static Survival way(std::uint64_t number) { return Survival(number); }
  static Survival at_random(Chance chance);

  // Which of so many versions, from the durable one on.
  std::size_t pick(std::size_t versions);
  // Of something that does not survive at all. It makes no difference which.
  void ignore(std::size_t versions);
  bool is_redundant() const { return redundant_; }

 private:
  explicit Survival(std::uint64_t number) : number_(number) {}

  std::uint64_t number_;
  std::optional<Chance> chance_{};
  std::uint64_t percent_ = 0;  // of things that have a new version
  bool redundant_ = false;
};

class SimulatedDisk final : public Storage {
 public:
  static constexpr std::size_t kSectorSize = 512;

  enum class Operation { create, write, allocate, truncate, remove, sync, sync_directory };
  static constexpr std::size_t kOperations = 7;
  static std::string_view name_of(Operation operation);

  SimulatedDisk() = default;
  explicit SimulatedDisk(const Files& files);  // all of it durable
  SimulatedDisk(const SimulatedDisk&
                    other);  // durable and volatile as there; with room enough, and nobody to watch
  SimulatedDisk& operator=(const SimulatedDisk&) = delete;

  // In how many ways a power failure can leave it; the largest number if there are more.
  std::uint64_t ways() const;
  // Nothing if another way leaves the same.
  std::optional<Files> after_power_failure(Survival survival) const;
  // When the oldest byte was written that is not durable (CLOCK_BOOTTIME), if there is one.
  std::optional<std::uint64_t> unsynced_since() const;
  std::uint64_t size() const;

  // At rest. What files there are; how many bytes one has, but for zeros at its end; and a bit of
  // one is another, as a disk does to what lies on it.
  std::vector<std::string> names() const;
  std::size_t used(const std::string& name) const;
  void flip_bit(const std::string& name, std::uint64_t bit);

  void advance(Duration by);
  void reboot(Duration down);

  // Asked before each call that may change something: an errno to fail with, or 0.
  std::function<int(Operation, const std::string& name)> fault{};
  // Told during each such call: what it writes can be read and is not durable; what it syncs is not
  // durable either. It may throw, and nobody returns to the call.
  std::function<void(Operation, const std::string& name)> watch{};
  std::uint64_t capacity = UINT64_MAX;  // of all files together
  ClockReading now{.boot_id = {1}, .boot_ns = 1'000'000'000, .wall_ns = 1'700'000'000'000'000'000};

  Fault list(std::vector<std::string>* names) override;
  Fault create(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault open(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault remove(const std::string& name) override;
  Fault sync_directory() override;
  Fault lock(std::string*) override { return {}; }
  ClockReading moment() override { return now; }
  const std::string& directory() const override { return path_; }

 private:
  class OpenFile;

  struct Sector {
    std::vector<std::string> versions;  // since it was durable, oldest first
    bool lost = false;                  // a sync has failed to write it
  };

  struct File {
    std::string seen;
    std::string durable;
    std::map<std::uint64_t, Sector> unsynced;
    std::vector<std::uint64_t> unsynced_sizes;
    std::uint64_t unsynced_since = 0;  // if there is such a sector

    void touch(std::uint64_t from, std::uint64_t to, std::uint64_t now_ns);
    void resize(std::uint64_t size, std::uint64_t now_ns);
    void sync();
    void lose();
    std::string after_power_failure(Survival& survival) const;
    template <typename Visit>
    void each_choice(Visit visit) const;
  };
  using FilePtr = std::shared_ptr<File>;  // null: there is no file of that name

  int begin(Operation operation, const std::string& name);
  void during(Operation operation, const std::string& name);
  void rename(const std::string& name, FilePtr file);
  bool fits(std::uint64_t more) const { return size() + more <= capacity; }

  const std::string path_ = "/simulated";
  std::map<std::string, FilePtr> seen_;
  std::map<std::string, FilePtr> durable_;
  std::map<std::string, std::vector<FilePtr>> unsynced_names_;  // versions, oldest first
};

}  // namespace lockd::crash
