#include "server/auth_tokens.h"

#include <algorithm>
#include <utility>

#include "base/secret.h"
#include "config/environment.h"
#include "config/values.h"

namespace lockd {

AuthTokens::AuthTokens(const Options& options)
    : path_(options.auth_token_file),
      given_(options.auth_token),
      is_used_(!options.secret.empty()) {
  Tokens tokens;
  for (const std::string& token : {options.secret, options.second_secret}) {
    if (!token.empty()) tokens.push_back(token);
  }
  replace(std::move(tokens));
}

bool AuthTokens::accept(std::string_view shown) const {
  if (!is_used_) return true;
  bool is_good = false;
  for (const std::string& token : *good_now()) is_good |= equal_in_constant_time(shown, token);
  return is_good;
}

TokenFile AuthTokens::read_again() const {
  if (path_.empty()) return {.tokens = *good_now()};
  TokenFile file = read_token_file(path_, config::process_environment());
  const auto& tokens = file.tokens;
  if (file.error.empty() && !given_.empty() &&
      std::find(tokens.begin(), tokens.end(), given_) == tokens.end()) {
    file.error = "it does not hold the token of --auth-token: give one of them";
  }
  if (!file.error.empty()) {
    file.error = "--auth-token-file is " + config::in_quotes(path_) + ": " + file.error;
  }
  return file;
}

void AuthTokens::replace(std::vector<std::string> tokens) {
  auto good = std::make_shared<const Tokens>(std::move(tokens));
  MutexLock lock(mutex_);
  good_ = std::move(good);
}

std::shared_ptr<const AuthTokens::Tokens> AuthTokens::good_now() const {
  MutexLock lock(mutex_);
  return good_;
}

}  // namespace lockd
