#include "journal/posix_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/clock_ns.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr const char* kLockName = "lock";

Fault fault(const char* operation) { return {errno, operation}; }

// Repeats a call that a signal interrupted.
template <typename Call>
auto persist(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// "1b4e28ba-2fa1-11d2-883f-0016d3cca427" as 16 bytes. Zeros where the kernel does not tell: then
// every run counts as the same boot only if CLOCK_BOOTTIME agrees, which is the best there is.
std::array<unsigned char, 16> read_boot_id() {
  std::array<unsigned char, 16> id{};
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t got = file ? persist([&] { return ::read(file.get(), text, sizeof text); }) : -1;
  std::size_t digits = 0;
  for (ssize_t i = 0; i < got && digits < 32; ++i) {
    const char* const at = std::strchr("0123456789abcdef", text[i]);
    if (at == nullptr || text[i] == '\0') continue;
    const auto digit = static_cast<unsigned char>(at - "0123456789abcdef");
    id[digits / 2] = static_cast<unsigned char>(id[digits / 2] << 4 | digit);
    ++digits;
  }
  return id;
}

// How far ahead of the machine's CLOCK_BOOTTIME this process's is: a time namespace, as a container
// may have, moves it. A line of the file is "boottime  <seconds>  <nanoseconds>".
std::uint64_t read_boot_offset_ns() {
  std::ifstream offsets("/proc/self/timens_offsets");
  std::string clock;
  for (std::int64_t s = 0, ns = 0; offsets >> clock >> s >> ns;) {
    if (clock == "boottime") return static_cast<std::uint64_t>(s * 1'000'000'000 + ns);
  }
  return 0;
}

class PosixFile final : public StorageFile {
 public:
  // `spare` outlives it, as does `directory`.
  PosixFile(std::string path, Descriptor file, int directory, Descriptor& spare)
      : path_(std::move(path)), file_(std::move(file)), directory_(directory), spare_(spare) {}

  // Its descriptor becomes the spare one in a single step: nobody can come in between.
  ~PosixFile() override {
    if (spare_ || ::dup3(directory_, file_.get(), O_CLOEXEC) < 0) return;
    spare_ = std::move(file_);
  }

  Fault read(std::uint64_t offset, std::span<char> into, std::size_t* got) override {
    *got = 0;
    while (*got < into.size()) {
      const ssize_t n = persist([&] {
        return ::pread(file_.get(), into.data() + *got, into.size() - *got,
                       static_cast<off_t>(offset + *got));
      });
      if (n < 0) return fault("read");
      if (n == 0) break;
      *got += static_cast<std::size_t>(n);
    }
    return {};
  }

  Fault write(std::uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = persist([&] {
        return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (n < 0) return fault("write");
      if (n == 0) return {EIO, "write"};
      offset += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  Fault size(std::uint64_t* size) override {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) return fault("stat");
    *size = static_cast<std::uint64_t>(status.st_size);
    return {};
  }

  Fault truncate(std::uint64_t size) override {
    const auto cut = [&] { return ::ftruncate(file_.get(), static_cast<off_t>(size)); };
    return persist(cut) != 0 ? fault("truncate") : Fault{};
  }

  Fault allocate(std::uint64_t from, std::uint64_t to) override {
    const Fault f = take_space(from, to);
    // A file system may have taken a part of it, of which nobody would have any use.
    const bool is_as_before = !f.is_no_space() || !truncate(from);
    return is_as_before ? f : Fault{EIO, "allocate"};
  }

  Fault sync() override {
    return persist([&] { return ::fdatasync(file_.get()); }) != 0 ? fault("sync") : Fault{};
  }

  // By its path, so that a directory that was renamed or replaced is noticed too. Who may not look,
  // as after giving up rights, has seen nothing amiss.
  bool is_in_place() override {
    struct stat opened {};
    struct stat found {};
    if (::lstat(path_.c_str(), &found) != 0) return errno != ENOENT && errno != ENOTDIR;
    return ::fstat(file_.get(), &opened) == 0 && opened.st_dev == found.st_dev &&
           opened.st_ino == found.st_ino;
  }

 private:
  // The space is taken first, so that a full disk is found before anything is written; then zeros
  // are written, since a file system that merely reserves space has to note with every sync which
  // part of it has been used.
  Fault take_space(std::uint64_t from, std::uint64_t to) {
    const auto reserve = [&] {
      return ::fallocate(file_.get(), 0, static_cast<off_t>(from), static_cast<off_t>(to - from));
    };
    if (persist(reserve) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return fault("allocate");
    static constexpr char kZeros[std::size_t{64} << 10] = {};
    for (std::uint64_t at = from; at < to; at += sizeof kZeros) {
      const std::size_t size = std::min<std::uint64_t>(sizeof kZeros, to - at);
      if (const Fault f = write(at, {kZeros, size})) return {f.error, "allocate"};
    }
    return {};
  }

  const std::string path_;
  Descriptor file_;
  const int directory_;
  Descriptor& spare_;
};

}  // namespace

bool Fault::is_no_space() const { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

bool Fault::is_shortage() const {
  return is_no_space() || error == EMFILE || error == ENFILE || error == ENOMEM;
}

std::string Fault::message() const {
  return std::string(operation) + ": " + std::system_category().message(error);
}

PosixStorage::PosixStorage(std::string directory, Access access)
    : path_(std::move(directory)),
      absolute_path_(std::filesystem::absolute(path_)),
      access_(access),
      boot_id_(read_boot_id()),
      boot_offset_ns_(read_boot_offset_ns()) {
  if (access_ == Access::write) make_directory();
  directory_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_) throw JournalError(path_ + ": " + fault("open").message());
  if (access_ != Access::write) return;
  check_private();
  spare_ = Descriptor(::fcntl(directory_.get(), F_DUPFD_CLOEXEC, 0));
}

void PosixStorage::make_directory() {
  if (::mkdir(path_.c_str(), 0700) != 0) {
    if (errno == EEXIST) return;
    throw JournalError(path_ + ": cannot make the directory: " + fault("mkdir").message());
  }
  // Its own name has to last as well.
  const std::string parent = path_ + "/..";
  const Descriptor above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above || persist([&] { return ::fsync(above.get()); }) != 0)
    throw JournalError(path_ + ": " + fault("sync").message());
}

void PosixStorage::check_private() const {
  struct stat status {};
  if (::fstat(directory_.get(), &status) != 0)
    throw JournalError(path_ + ": " + fault("stat").message());
  if ((status.st_mode & 077) == 0) return;
  throw JournalError(
      path_ + ": others may enter this directory, and what is in it is secret; run: chmod 700 " +
      path_);
}

// Another thread may take the descriptor that is given up here: then there is none, and a later
// call tries again.
template <typename Open>
Descriptor PosixStorage::open_with_spare(Open open) {
  Descriptor fd(persist(open));
  if (fd || (errno != EMFILE && errno != ENFILE)) {
    const int error = errno;
    if (!spare_) spare_ = Descriptor(::fcntl(directory_.get(), F_DUPFD_CLOEXEC, 0));
    errno = error;
    return fd;
  }
  spare_.reset();
  return Descriptor(persist(open));
}

Fault PosixStorage::list(std::vector<std::string>* names) {
  names->clear();
  // A stream of its own: fdopendir() would take ours.
  Descriptor again = open_with_spare(
      [&] { return ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!again) return fault("list");
  DIR* const stream = ::fdopendir(again.get());
  if (stream == nullptr) return fault("list");
  again.release();
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) names->emplace_back(entry->d_name);
  const Fault f = fault("list");  // 0 at the end
  ::closedir(stream);
  return f;
}

Fault PosixStorage::create(const std::string& name, std::unique_ptr<StorageFile>* file) {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
  Descriptor fd =
      open_with_spare([&] { return ::openat(directory_.get(), name.c_str(), flags, 0600); });
  if (!fd) return fault("create");
  *file = std::make_unique<PosixFile>(absolute_path_ + "/" + name, std::move(fd), directory_.get(),
                                      spare_);
  return {};
}

Fault PosixStorage::open(const std::string& name, std::unique_ptr<StorageFile>* file) {
  const int flags = (access_ == Access::write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
  Descriptor fd = open_with_spare([&] { return ::openat(directory_.get(), name.c_str(), flags); });
  if (!fd) return fault("open");
  *file = std::make_unique<PosixFile>(absolute_path_ + "/" + name, std::move(fd), directory_.get(),
                                      spare_);
  return {};
}

Fault PosixStorage::remove(const std::string& name) {
  return ::unlinkat(directory_.get(), name.c_str(), 0) != 0 ? fault("remove") : Fault{};
}

Fault PosixStorage::sync_directory() {
  return persist([&] { return ::fsync(directory_.get()); }) != 0 ? fault("sync directory")
                                                                 : Fault{};
}

// The directory is locked, whose lock nobody can remove; and a file in it, which earlier versions
// lock alone, and which says who has them. Where a directory cannot be locked (NFS) the file has to
// do. Who only reads keeps out those who write, and leaves the file as it is, there or not.
Fault PosixStorage::lock(std::string* owner) {
  const bool writes = access_ == Access::write;
  const auto take = [&](const Descriptor& fd) {
    return persist([&] { return ::flock(fd.get(), (writes ? LOCK_EX : LOCK_SH) | LOCK_NB); }) == 0;
  };
  if (!take(directory_) && errno == EWOULDBLOCK) {
    const Fault f = fault("lock");
    *owner = read_owner();
    return f;
  }
  const int flags = (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
  Descriptor fd(persist([&] { return ::openat(directory_.get(), kLockName, flags, 0600); }));
  if (!fd && !writes && errno == ENOENT) return {};
  if (!fd) return fault("open the lock of");
  if (!take(fd)) {
    const Fault f = fault("lock");
    *owner = read_owner();
    return f;
  }
  auto file = std::make_unique<PosixFile>(absolute_path_ + "/" + kLockName, std::move(fd),
                                          directory_.get(), spare_);
  if (!writes) {
    lock_ = std::move(file);
    return {};
  }
  // Over what is there, and only then cut to its size: a full disk has no room for it otherwise.
  const std::string pid = std::to_string(::getpid()) + "\n";
  Fault f = file->write(0, pid);
  if (!f) f = file->truncate(pid.size());
  // The number is for people: without room for it the lock is a lock.
  if (f && !f.is_no_space()) return {f.error, "write the lock of"};
  lock_ = std::move(file);
  return {};
}

std::string PosixStorage::read_owner() const {
  const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor fd(persist([&] { return ::openat(directory_.get(), kLockName, flags); }));
  char text[32];
  const ssize_t got = fd ? persist([&] { return ::pread(fd.get(), text, sizeof text, 0); }) : 0;
  const std::string_view line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::string_view pid = line.substr(0, line.find('\n'));
  return pid.empty() ? "another process" : "process " + std::string(pid);
}

ClockReading PosixStorage::moment() {
  return {boot_id_, clock_ns(CLOCK_BOOTTIME) - boot_offset_ns_, clock_ns(CLOCK_REALTIME)};
}

}  // namespace lockd
