// A real directory.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "journal/storage.h"

namespace lockd {

class PosixStorage final : public Storage {
 public:
  enum class Access { read, write };

  // Opens the directory. With Access::write it is made when it is not there (0700), and refused
  // when anyone but its owner may enter it. Throws JournalError.
  PosixStorage(std::string directory, Access access);

  Fault list(std::vector<std::string>* names) override;
  Fault create(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault open(const std::string& name, std::unique_ptr<StorageFile>* file) override;
  Fault remove(const std::string& name) override;
  Fault sync_directory() override;
  Fault lock(std::string* owner) override;
  ClockReading moment() override;
  const std::string& directory() const override { return path_; }
  // CLOCK_BOOTTIME as this process reads it, less that of moment(), which is the machine's.
  std::uint64_t boot_offset_ns() const { return boot_offset_ns_; }

 private:
  void make_directory();
  void check_private() const;
  std::string read_owner() const;
  template <typename Open>
  Descriptor open_with_spare(Open open);

  const std::string path_;
  const std::string absolute_path_;  // means the same when the process changes its directory
  const Access access_;
  const std::array<unsigned char, 16> boot_id_;
  const std::uint64_t boot_offset_ns_;
  Descriptor directory_;
  // Kept for a file that has to be opened when the process has no descriptors left, because
  // strangers have connected to it. A file that is closed becomes the next.
  Descriptor spare_;
  std::unique_ptr<StorageFile> lock_;
};

}  // namespace lockd
