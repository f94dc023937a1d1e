#include "durability/private_mount.h"

#include <sched.h>
#include <sys/mount.h>

#include <utility>

namespace lockd {

PrivateMount::PrivateMount(std::string path, const std::string& options, bool read_only)
    : path_(std::move(path)) {
  // A view of the mounts that is ours alone, and of which nothing gets out.
  if (::unshare(CLONE_NEWNS) != 0) return;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  const unsigned long flags = read_only ? MS_RDONLY : 0;
  is_there_ = ::mount("lockd", path_.c_str(), "tmpfs", flags, options.c_str()) == 0;
}

PrivateMount::~PrivateMount() {
  if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
}

}  // namespace lockd
