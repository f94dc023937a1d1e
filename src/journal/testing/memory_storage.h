// A directory in memory, for tests: files that can be changed by hand, time that is moved by hand,
// a disk that fills up, and operations that fail when asked to. It is not a model of a crash: what
// is written is there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "journal/storage.h"

namespace lockd {

class MemoryStorage final : public Storage {
 public:
  using Files = std::map<std::string, std::string>;

  MemoryStorage() = default;
  explicit MemoryStorage(const Files& files);

  Fault list(std::vector<std::string>* names) override;
  Fault create(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault open(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault remove(const std::string& name) override;
  Fault sync_directory() override;
  Fault lock(std::string* owner) override;
  ClockReading moment() override { return now; }
  const std::string& directory() const override { return path_; }

  // Copies of what is there.
  Files files() const;
  std::string bytes(const std::string& name) const { return *files_.at(name); }
  void set_bytes(const std::string& name, std::string bytes);
  void clear() { files_.clear(); }
  std::uint64_t size() const;

  // Moves both clocks.
  void advance(std::uint64_t ns) {
    now.boot_ns += ns;
    now.wall_ns += ns;
  }

  ClockReading now{.boot_id = {1}, .boot_ns = 1'000'000'000, .wall_ns = 1'700'000'000'000'000'000};
  std::uint64_t capacity = UINT64_MAX;  // of all files together
  std::uint64_t read_max = 0;           // the most that was asked for in one read
  // Asked before every operation that changes something, "write journal-....log": an errno to fail
  // with, or 0. Every such operation is listed in `operations`.
  std::function<int(const std::string&)> fault{};
  std::vector<std::string> operations{};
  std::string owner{};  // of the lock, if there is one

 private:
  friend class MemoryFile;
  using Bytes = std::shared_ptr<std::string>;

  Fault note(const char* operation, const std::string& name);
  bool fits(const std::string& file, std::uint64_t size) const;

  const std::string path_ = "/memory";
  std::map<std::string, Bytes> files_;
};

}  // namespace lockd
