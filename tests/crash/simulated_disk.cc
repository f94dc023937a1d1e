#include "crash/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockd::crash {
namespace {

constexpr std::size_t kSector = SimulatedDisk::kSectorSize;

// A sector of `bytes`, with zeros where there are none.
std::string sector_of(const std::string& bytes, std::uint64_t number) {
  const std::uint64_t offset = number * kSector;
  std::string sector = offset < bytes.size() ? bytes.substr(offset, kSector) : std::string();
  sector.resize(kSector);
  return sector;
}

// Into `bytes`, as far as it reaches.
void put_sector(std::string& bytes, std::uint64_t number, const std::string& sector) {
  const std::uint64_t offset = number * kSector;
  if (offset >= bytes.size()) return;
  const std::size_t size = std::min<std::uint64_t>(kSector, bytes.size() - offset);
  bytes.replace(offset, size, sector, 0, size);
}

}  // namespace

Survival Survival::at_random(Chance chance) {
  Survival survival(0);
  static constexpr std::uint64_t kPercents[] = {10, 50, 90};
  survival.percent_ = kPercents[chance.below(3)];
  survival.chance_ = chance;
  return survival;
}

std::size_t Survival::pick(std::size_t versions) {
  if (versions == 1) return 0;
  if (chance_) return chance_->percent(percent_) ? 1 + chance_->below(versions - 1) : 0;
  const std::uint64_t picked = number_ % versions;
  number_ /= versions;
  return picked;
}

void Survival::ignore(std::size_t versions) {
  if (!chance_ && pick(versions) != 0) redundant_ = true;
}

// --- files ---

void SimulatedDisk::File::touch(std::uint64_t from, std::uint64_t to, std::uint64_t now_ns) {
  if (unsynced.empty()) unsynced_since = now_ns;
  for (std::uint64_t number = from / kSector; number * kSector < to; ++number) {
    std::string content = sector_of(seen, number);
    const auto found = unsynced.find(number);
    if (found != unsynced.end()) found->second.lost = false;
    const std::string before =
        found == unsynced.end() ? sector_of(durable, number) : found->second.versions.back();
    if (content != before) unsynced[number].versions.push_back(std::move(content));
  }
}

void SimulatedDisk::File::resize(std::uint64_t size, std::uint64_t now_ns) {
  const std::uint64_t before = seen.size();
  if (size == before) return;
  seen.resize(size);
  touch(std::min(size, before), std::max(size, before), now_ns);
  unsynced_sizes.push_back(size);
}

void SimulatedDisk::File::sync() {
  durable.resize(seen.size());
  for (auto at = unsynced.begin(); at != unsynced.end();) {
    if (at->second.lost) {
      ++at;
      continue;
    }
    put_sector(durable, at->first, sector_of(seen, at->first));
    at = unsynced.erase(at);
  }
  unsynced_sizes.clear();
}

void SimulatedDisk::File::lose() {
  for (auto& [number, sector] : unsynced) sector.lost = true;
}

std::string SimulatedDisk::File::after_power_failure(Survival& survival) const {
  const std::size_t size = survival.pick(unsynced_sizes.size() + 1);
  std::string left = durable;
  left.resize(size == 0 ? durable.size() : unsynced_sizes[size - 1]);
  for (const auto& [number, sector] : unsynced) {
    const std::size_t versions = sector.versions.size() + 1;
    if (number * kSector >= left.size()) {
      survival.ignore(versions);
    } else if (const std::size_t version = survival.pick(versions)) {
      put_sector(left, number, sector.versions[version - 1]);
    }
  }
  return left;
}

// In the order in which after_power_failure() picks.
template <typename Visit>
void SimulatedDisk::File::each_choice(Visit visit) const {
  visit(unsynced_sizes.size() + 1);
  for (const auto& [number, sector] : unsynced) visit(sector.versions.size() + 1);
}

class SimulatedDisk::OpenFile final : public StorageFile {
 public:
  OpenFile(SimulatedDisk& disk, std::string name, FilePtr file)
      : disk_(disk), name_(std::move(name)), file_(std::move(file)) {}

  Fault read(std::uint64_t offset, std::span<char> into, std::size_t* got) override {
    const std::string& seen = file_->seen;
    *got = offset < seen.size() ? seen.copy(into.data(), into.size(), offset) : 0;
    return {};
  }

  // A write that fails may have written any of it: here, the first half.
  Fault write(std::uint64_t offset, std::string_view bytes) override {
    const int error = disk_.begin(Operation::write, name_);
    if (error == ENOSPC) return {error, "write"};
    if (error != 0) bytes = bytes.substr(0, bytes.size() / 2);
    const std::uint64_t end = offset + bytes.size();
    if (end > file_->seen.size() && !disk_.fits(end - file_->seen.size())) return {ENOSPC, "write"};
    if (end > file_->seen.size()) file_->resize(end, now_ns());
    file_->seen.replace(offset, bytes.size(), bytes);
    file_->touch(offset, end, now_ns());
    disk_.during(Operation::write, name_);
    return {error, "write"};
  }

  Fault size(std::uint64_t* size) override {
    *size = file_->seen.size();
    return {};
  }

  Fault truncate(std::uint64_t size) override {
    if (const int error = disk_.begin(Operation::truncate, name_)) return {error, "truncate"};
    file_->resize(size, now_ns());
    disk_.during(Operation::truncate, name_);
    return {};
  }

  Fault allocate(std::uint64_t from, std::uint64_t to) override {
    if (from != file_->seen.size() || to < from) return {EINVAL, "allocate"};
    if (const int error = disk_.begin(Operation::allocate, name_)) return {error, "allocate"};
    if (!disk_.fits(to - from)) return {ENOSPC, "allocate"};
    file_->resize(to, now_ns());
    disk_.during(Operation::allocate, name_);
    return {};
  }

  Fault sync() override {
    const int error = disk_.begin(Operation::sync, name_);
    disk_.during(Operation::sync, name_);
    error == 0 ? file_->sync() : file_->lose();
    return {error, "sync"};
  }

  bool is_in_place() override {
    const auto found = disk_.seen_.find(name_);
    return found != disk_.seen_.end() && found->second == file_;
  }

 private:
  std::uint64_t now_ns() const { return disk_.now.boot_ns; }

  SimulatedDisk& disk_;
  const std::string name_;
  const FilePtr file_;
};

// --- the directory ---

std::string_view SimulatedDisk::name_of(Operation operation) {
  static constexpr std::string_view kNames[kOperations] = {
      "create", "write", "allocate", "truncate", "remove", "sync", "sync directory"};
  return kNames[static_cast<std::size_t>(operation)];
}

SimulatedDisk::SimulatedDisk(const Files& files) {
  for (const auto& [name, bytes] : files) {
    auto file = std::make_shared<File>();
    file->seen = file->durable = bytes;
    seen_[name] = durable_[name] = std::move(file);
  }
}

SimulatedDisk::SimulatedDisk(const SimulatedDisk& other) : Storage(), now(other.now) {
  std::map<FilePtr, FilePtr> copies;  // one for each, however many names it has had
  const auto copy = [&](const FilePtr& file) {
    if (file == nullptr) return FilePtr();
    FilePtr& made = copies[file];
    if (made == nullptr) made = std::make_shared<File>(*file);
    return made;
  };
  for (const auto& [name, file] : other.seen_) seen_[name] = copy(file);
  for (const auto& [name, file] : other.durable_) durable_[name] = copy(file);
  for (const auto& [name, versions] : other.unsynced_names_) {
    for (const FilePtr& file : versions) unsynced_names_[name].push_back(copy(file));
  }
}

std::uint64_t SimulatedDisk::ways() const {
  std::uint64_t ways = 1;
  const auto multiply = [&](std::size_t versions) {
    if (__builtin_mul_overflow(ways, versions, &ways)) ways = UINT64_MAX;
  };
  const auto count = [&](const FilePtr& file) {
    if (file != nullptr) file->each_choice(multiply);
  };
  for (const auto& [name, versions] : unsynced_names_) {
    multiply(versions.size() + 1);
    for (const FilePtr& file : versions) count(file);
  }
  for (const auto& [name, file] : durable_) count(file);
  return ways;
}

std::optional<Files> SimulatedDisk::after_power_failure(Survival survival) const {
  Files left;
  const auto decide = [&](const std::string& name, const FilePtr& file, bool survives) {
    if (file == nullptr) return;
    if (survives) {
      left[name] = file->after_power_failure(survival);
    } else {
      file->each_choice([&](std::size_t versions) { survival.ignore(versions); });
    }
  };
  std::map<std::string, std::size_t> picked;
  for (const auto& [name, versions] : unsynced_names_) {
    picked[name] = survival.pick(versions.size() + 1);
    for (std::size_t i = 0; i < versions.size(); ++i) {
      decide(name, versions[i], i + 1 == picked[name]);
    }
  }
  for (const auto& [name, file] : durable_) {
    const auto found = picked.find(name);
    decide(name, file, found == picked.end() || found->second == 0);
  }
  if (survival.is_redundant()) return {};
  return left;
}

std::optional<std::uint64_t> SimulatedDisk::unsynced_since() const {
  std::optional<std::uint64_t> since;
  for (const auto& [name, file] : seen_) {
    if (file->unsynced.empty()) continue;
    since = std::min(since.value_or(UINT64_MAX), file->unsynced_since);
  }
  return since;
}

std::uint64_t SimulatedDisk::size() const {
  std::uint64_t sum = 0;
  for (const auto& [name, file] : seen_) sum += file->seen.size();
  return sum;
}

std::vector<std::string> SimulatedDisk::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : seen_) names.push_back(name);
  return names;
}

std::size_t SimulatedDisk::used(const std::string& name) const {
  const std::size_t last = seen_.at(name)->seen.find_last_not_of('\0');
  return last == std::string::npos ? 0 : last + 1;
}

void SimulatedDisk::flip_bit(const std::string& name, std::uint64_t bit) {
  File& file = *seen_.at(name);
  for (std::string* const plane : {&file.seen, &file.durable}) {
    if (bit / 8 < plane->size()) (*plane)[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

void SimulatedDisk::advance(Duration by) {
  now.boot_ns += static_cast<std::uint64_t>(by.count());
  now.wall_ns += static_cast<std::uint64_t>(by.count());
}

void SimulatedDisk::reboot(Duration down) {
  ++now.boot_id[0];
  now.boot_ns = 1'000'000'000;
  now.wall_ns += static_cast<std::uint64_t>(down.count());
}

int SimulatedDisk::begin(Operation operation, const std::string& name) {
  return fault ? fault(operation, name) : 0;
}

void SimulatedDisk::during(Operation operation, const std::string& name) {
  if (watch) watch(operation, name);
}

// From now on readers see `file` under `name`.
void SimulatedDisk::rename(const std::string& name, FilePtr file) {
  unsynced_names_[name].push_back(file);
  file == nullptr ? void(seen_.erase(name)) : void(seen_[name] = std::move(file));
}

Fault SimulatedDisk::list(std::vector<std::string>* names) {
  *names = this->names();
  return {};
}

Fault SimulatedDisk::create(const std::string& name, std::unique_ptr<StorageFile>* file) {
  if (const int error = begin(Operation::create, name)) return {error, "create"};
  if (seen_.contains(name)) return {EEXIST, "create"};
  rename(name, std::make_shared<File>());
  during(Operation::create, name);
  return open(name, file);
}

Fault SimulatedDisk::open(const std::string& name, std::unique_ptr<StorageFile>* file) {
  const auto found = seen_.find(name);
  if (found == seen_.end()) return {ENOENT, "open"};
  *file = std::make_unique<OpenFile>(*this, name, found->second);
  return {};
}

Fault SimulatedDisk::remove(const std::string& name) {
  if (const int error = begin(Operation::remove, name)) return {error, "remove"};
  if (!seen_.contains(name)) return {ENOENT, "remove"};
  rename(name, nullptr);
  during(Operation::remove, name);
  return {};
}

// A failed one may have made any of the names durable, and a later one makes them all so: a file
// system's own log does not forget them.
Fault SimulatedDisk::sync_directory() {
  const int error = begin(Operation::sync_directory, path_);
  during(Operation::sync_directory, path_);
  if (error != 0) return {error, "sync directory"};
  durable_ = seen_;
  unsynced_names_.clear();
  return {};
}

}  // namespace lockd::crash
