// What the command of `run` is run under: a lock, or several keys. For the first thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockd/client/boot_clock.h"
#include "lockd/client/held_lock.h"

namespace lockd::cli {

class Held {
 public:
  Held() = default;
  virtual ~Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // False is final.
  virtual bool is_held() const = 0;
  // Why it is not, as far as that is known.
  virtual std::optional<std::string> loss() const = 0;
  // For people: "the lock on 'deploy'".
  virtual std::string name() const = 0;
  // What the command sees of it: "LOCKD_FENCE=7".
  virtual std::vector<std::string> variables() const = 0;
  // Nothing is held afterwards. How it was lost before that, if it was.
  virtual std::optional<std::string> release() = 0;
};

class HeldKey final : public Held {
 public:
  explicit HeldKey(client::HeldLock lock) : lock_(std::move(lock)) {}

  bool is_held() const override { return lock_.is_held(); }
  std::optional<std::string> loss() const override;
  std::string name() const override;
  std::vector<std::string> variables() const override;
  std::optional<std::string> release() override;

 private:
  client::HeldLock lock_;
};

// Unix time in whole seconds, rounded down, so that nobody counts on more than there is.
std::int64_t unix_seconds_of(client::BootClock::time_point time);

}  // namespace lockd::cli
