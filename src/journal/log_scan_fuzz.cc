// A journal's directory: the input is its files, each as a line with its name and size, then its
// bytes. It is scanned, recovered and scanned again, or refused; what was read once must be read
// the same again, and nothing may be read beyond what is there.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "journal/log_journal.h"
#include "journal/recovery.h"
#include "journal/testing/memory_storage.h"
#include "lockd/file_journal.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

lockd::MemoryStorage::Files files_of(std::string_view input) {
  lockd::MemoryStorage::Files files;
  while (!input.empty() && files.size() < 8) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    const std::size_t blank = std::min(line.find(' '), line.size());
    std::size_t size = 0;
    std::from_chars(line.data() + std::min(blank + 1, line.size()), line.data() + line.size(),
                    size);
    size = std::min(size, input.size());
    files[std::string(line.substr(0, blank))] = input.substr(0, size);
    input.remove_prefix(size);
  }
  return files;
}

std::uint64_t recover(lockd::MemoryStorage& storage) {
  std::uint64_t events = 0;
  // Little is taken ahead: every zero of it is looked at by each scan.
  lockd::LogJournal journal(storage,
                            {.segment = {.reserve = 512, .step_min = 512, .step_max = 512}});
  journal.recover([&](const lockd::Event&) { ++events; });
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lockd::MemoryStorage storage(files_of({reinterpret_cast<const char*>(data), size}));
  try {
    lockd::scan(storage, [](std::string_view) {});
    const std::uint64_t first = recover(storage);
    storage.owner.clear();
    check(recover(storage) == first);
  } catch (const lockd::JournalError&) {
  }
  return 0;
}
