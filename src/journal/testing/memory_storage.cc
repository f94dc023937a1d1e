#include "journal/testing/memory_storage.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockd {

class MemoryFile final : public StorageFile {
 public:
  MemoryFile(MemoryStorage& storage, std::string name, MemoryStorage::Bytes bytes)
      : storage_(storage), name_(std::move(name)), bytes_(std::move(bytes)) {}

  Fault read(std::uint64_t offset, std::span<char> into, std::size_t* got) override {
    storage_.read_max = std::max<std::uint64_t>(storage_.read_max, into.size());
    *got = offset < bytes_->size() ? bytes_->copy(into.data(), into.size(), offset) : 0;
    return {};
  }

  Fault write(std::uint64_t offset, std::string_view bytes) override {
    if (const Fault fault = storage_.note("write", name_)) return fault;
    if (!grow(offset + bytes.size())) return {ENOSPC, "write"};
    bytes_->replace(offset, bytes.size(), bytes);
    return {};
  }

  Fault size(std::uint64_t* size) override {
    *size = bytes_->size();
    return {};
  }

  Fault truncate(std::uint64_t size) override {
    if (const Fault fault = storage_.note("truncate", name_)) return fault;
    bytes_->resize(size);
    return {};
  }

  Fault allocate(std::uint64_t from, std::uint64_t to) override {
    if (const Fault fault = storage_.note("allocate", name_)) return fault;
    if (!grow(to)) return {ENOSPC, "allocate"};
    bytes_->replace(from, to - from, to - from, '\0');
    return {};
  }

  Fault sync() override { return storage_.note("sync", name_); }

  bool is_in_place() override {
    const auto found = storage_.files_.find(name_);
    return found != storage_.files_.end() && found->second == bytes_;
  }

 private:
  bool grow(std::uint64_t size) {
    if (size <= bytes_->size()) return true;
    if (!storage_.fits(name_, size)) return false;
    bytes_->resize(size);
    return true;
  }

  MemoryStorage& storage_;
  const std::string name_;
  const MemoryStorage::Bytes bytes_;
};

MemoryStorage::MemoryStorage(const Files& files) {
  for (const auto& [name, bytes] : files) set_bytes(name, bytes);
}

Fault MemoryStorage::list(std::vector<std::string>* names) {
  names->clear();
  for (const auto& [name, bytes] : files_) names->push_back(name);
  return {};
}

Fault MemoryStorage::create(const std::string& name, std::unique_ptr<StorageFile>* file) {
  if (const Fault fault = note("create", name)) return fault;
  if (files_.contains(name)) return {EEXIST, "create"};
  files_[name] = std::make_shared<std::string>();
  return open(name, file);
}

Fault MemoryStorage::open(const std::string& name, std::unique_ptr<StorageFile>* file) {
  const auto found = files_.find(name);
  if (found == files_.end()) return {ENOENT, "open"};
  *file = std::make_unique<MemoryFile>(*this, name, found->second);
  return {};
}

Fault MemoryStorage::remove(const std::string& name) {
  if (const Fault fault = note("remove", name)) return fault;
  return files_.erase(name) != 0 ? Fault{} : Fault{ENOENT, "remove"};
}

Fault MemoryStorage::sync_directory() { return note("sync directory", path_); }

Fault MemoryStorage::lock(std::string* who) {
  if (owner.empty()) return {};
  *who = owner;
  return {EWOULDBLOCK, "lock"};
}

MemoryStorage::Files MemoryStorage::files() const {
  Files copy;
  for (const auto& [name, bytes] : files_) copy[name] = *bytes;
  return copy;
}

void MemoryStorage::set_bytes(const std::string& name, std::string bytes) {
  files_[name] = std::make_shared<std::string>(std::move(bytes));
}

std::uint64_t MemoryStorage::size() const {
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : files_) sum += bytes->size();
  return sum;
}

Fault MemoryStorage::note(const char* operation, const std::string& name) {
  operations.push_back(std::string(operation) + " " + name);
  const int error = fault ? fault(operations.back()) : 0;
  return {error, operation};
}

bool MemoryStorage::fits(const std::string& file, std::uint64_t size) const {
  const auto found = files_.find(file);
  const std::uint64_t others = this->size() - (found == files_.end() ? 0 : found->second->size());
  return others + size <= capacity;
}

}  // namespace lockd
