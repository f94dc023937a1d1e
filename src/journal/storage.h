// The interface to a directory of files, as the journal needs it: small enough for a test to put a
// simulated disk behind it.
//
// What the journal may rest on, and a simulation should not promise more:
//   - bytes written are durable when a later sync() of their file has returned without a fault;
//     before that any of them, in units of a sector, may or may not be;
//   - a file's size, and that it was allocated, likewise;
//   - a name that was created or removed is durable when a later sync_directory() has returned;
//   - after a fault of write, sync or sync_directory nothing is known of what came since the last.
//
// Faults are values. A Storage is used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {

// What went wrong, or nothing.
struct [[nodiscard]] Fault {
  int error = 0;               // an errno
  const char* operation = "";  // "write", "sync", ...

  explicit operator bool() const { return error != 0; }
  bool is_no_space() const;     // on the disk, or in what we may have of it: quotas, limits
  bool is_shortage() const;     // of space, descriptors or memory: it may pass
  std::string message() const;  // "sync: Input/output error"
};

// When something was: on this boot of the machine, and by its wall clock.
struct ClockReading {
  std::array<unsigned char, 16> boot_id{};
  std::uint64_t boot_ns = 0;  // CLOCK_BOOTTIME of the machine, whatever the process's namespace
  std::uint64_t wall_ns = 0;  // CLOCK_REALTIME: since 1970, if the clock is right
};

class StorageFile {
 public:
  virtual ~StorageFile() = default;  // closes it

  // Reads up to `into.size()` bytes; fewer only at the end of the file.
  virtual Fault read(std::uint64_t offset, std::span<char> into, std::size_t* got) = 0;
  // All of it, or a fault.
  virtual Fault write(std::uint64_t offset, std::string_view bytes) = 0;
  virtual Fault size(std::uint64_t* size) = 0;
  virtual Fault truncate(std::uint64_t size) = 0;
  // Makes the file `to` bytes long, zeros from `from` on, and takes the space for them: a write
  // there will not find the disk full. `from` is the end of the file, also after there was no
  // space.
  virtual Fault allocate(std::uint64_t from, std::uint64_t to) = 0;
  virtual Fault sync() = 0;
  // Whether the file is still there under its name, in a directory under its own. Only their owner
  // has a reason to remove them; a journal that goes on writing into a file that the next start
  // does not find loses everything. Costs little.
  virtual bool is_in_place() = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual Fault list(std::vector<std::string>* names) = 0;
  // A new, empty file that nobody else may read; a fault if there is one of that name.
  virtual Fault create(const std::string& name, std::unique_ptr<StorageFile>* file) = 0;
  virtual Fault open(const std::string& name, std::unique_ptr<StorageFile>* file) = 0;
  virtual Fault remove(const std::string& name) = 0;
  virtual Fault sync_directory() = 0;
  // Keeps every other process out until this storage goes. When one is there already, the fault is
  // EWOULDBLOCK and `owner` says which: "process 4711", or "another process".
  virtual Fault lock(std::string* owner) = 0;

  virtual ClockReading moment() = 0;
  // The directory as people know it, for messages.
  virtual const std::string& directory() const = 0;
};

}  // namespace lockd
