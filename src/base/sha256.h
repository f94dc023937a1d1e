// SHA-256, by OpenSSL, and the secrets of which nothing else is kept. Any thread may call anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockd {

using Sha256 = std::array<std::uint8_t, 32>;

// Throws std::bad_alloc when OpenSSL has no memory for it.
Sha256 sha256(std::string_view bytes);

// HMAC-SHA256 of `bytes` under `key`. Throws likewise.
Sha256 hmac_sha256(std::string_view key, std::string_view bytes);

// 64 hex digits, in small letters; and back, in letters of either size. None when it is no digest.
std::string hex_of(const Sha256& digest);
std::optional<Sha256> parse_sha256(std::string_view hex);

inline std::string_view bytes_of(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// A secret that was told once: it can be recognized, and not be read. Empty: there is none.
class HashedSecret {
 public:
  HashedSecret() = default;
  HashedSecret(std::string_view secret) : is_set_(!secret.empty()) {
    if (is_set_) digest_ = sha256(secret);
  }
  HashedSecret(const std::string& secret) : HashedSecret(std::string_view(secret)) {}
  HashedSecret(const char* secret) : HashedSecret(std::string_view(secret)) {}

  bool empty() const { return !is_set_; }
  const Sha256& digest() const { return digest_; }

  friend bool operator==(const HashedSecret&, const HashedSecret&) = default;

 private:
  bool is_set_ = false;
  Sha256 digest_{};
};

}  // namespace lockd
