#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <new>

namespace lockd {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  // To look it up for every call would take longer than to compute it.
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Sha256 digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, algorithm, nullptr) != 1) {
    throw std::bad_alloc();
  }
  return digest;
}

Sha256 hmac_sha256(std::string_view key, std::string_view bytes) {
  Sha256 digest{};
  unsigned size = 0;
  const auto* const text = reinterpret_cast<const unsigned char*>(bytes.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text, bytes.size(),
           digest.data(), &size) == nullptr) {
    throw std::bad_alloc();
  }
  return digest;
}

std::string hex_of(const Sha256& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  return hex;
}

std::optional<Sha256> parse_sha256(std::string_view hex) {
  Sha256 digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = digit_of(hex[2 * i]);
    const int low = digit_of(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace lockd
