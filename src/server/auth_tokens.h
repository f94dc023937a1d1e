// The auth tokens that are good now, for all sessions, and how they are replaced.
//
// Any thread may call anything. Who was let in stays in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "server/settings/options.h"
#include "server/settings/token_file.h"

namespace lockd {

class AuthTokens {
 public:
  explicit AuthTokens(const Options& options);

  // Whether one is asked for at all, which does not change.
  bool are_used() const { return is_used_; }
  // In a time that depends on what is shown, not on how much of it is right or of which token.
  // Whatever is shown is good when none is asked for.
  bool accept(std::string_view shown) const EXCLUDES(mutex_);

  // What the file holds now; as it was given when there is no file. What is wrong with it is a
  // whole line, and nothing is replaced yet.
  TokenFile read_again() const EXCLUDES(mutex_);
  void replace(std::vector<std::string> tokens) EXCLUDES(mutex_);

 private:
  using Tokens = std::vector<std::string>;

  std::shared_ptr<const Tokens> good_now() const EXCLUDES(mutex_);

  const std::string path_;   // empty: there is no file
  const std::string given_;  // by --auth-token
  const bool is_used_;

  mutable Mutex mutex_;
  std::shared_ptr<const Tokens> good_ GUARDED_BY(mutex_);
};

}  // namespace lockd
