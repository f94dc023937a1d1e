// A small file system that only this thread sees, and the processes that it starts. It goes with
// its scope.
#pragma once

#include <string>

namespace lockd {

class PrivateMount {
 public:
  // A tmpfs on `path`, with `options` such as "size=1m". Only root may, and not everywhere.
  PrivateMount(std::string path, const std::string& options, bool read_only = false);
  ~PrivateMount();
  PrivateMount(const PrivateMount&) = delete;
  PrivateMount& operator=(const PrivateMount&) = delete;

  bool is_there() const { return is_there_; }

 private:
  const std::string path_;
  bool is_there_ = false;
};

}  // namespace lockd
