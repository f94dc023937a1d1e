// A place in a listing as its reader sees it: one encrypted block, in hex.
//
// The rank of a place is the hash of a key, and whoever knew hashes could look for keys that
// collide. The block is under a key of this process, so a place of another one, or one that
// somebody made up, is told from ours by its last word.
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server/reports/report.h"

namespace lockd {
namespace {

struct Block {
  std::uint64_t rank = 0;
  std::uint32_t shard = 0;
  std::uint32_t zero = 0;
};
static_assert(sizeof(Block) == 16, "one block of AES");

using BlockBytes = std::array<unsigned char, sizeof(Block)>;

void require(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot encrypt");
}

const BlockBytes& process_key() {
  static const BlockBytes key = [] {
    BlockBytes random;
    require(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
    return random;
  }();
  return key;
}

enum class Way : std::uint8_t { decrypt, encrypt };

BlockBytes crypt(const BlockBytes& in, Way way) {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  require(context != nullptr);
  require(EVP_CipherInit_ex(context.get(), EVP_aes_128_ecb(), nullptr, process_key().data(),
                            nullptr, way == Way::encrypt ? 1 : 0) == 1);
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  BlockBytes out;
  int written = 0;
  require(EVP_CipherUpdate(context.get(), out.data(), &written, in.data(),
                           static_cast<int>(in.size())) == 1);
  return out;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string place_text(const ListCursor& place) {
  const Block block{.rank = place.rank, .shard = place.shard};
  BlockBytes bytes;
  std::memcpy(bytes.data(), &block, sizeof block);
  std::string text;
  for (const unsigned char byte : crypt(bytes, Way::encrypt)) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

bool parse_place(std::string_view text, ListCursor* place) {
  BlockBytes bytes;
  if (text.size() != 2 * bytes.size()) return false;
  if (text.find_first_not_of(kHexDigits) != std::string_view::npos) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, bytes[i], 16);
  }
  bytes = crypt(bytes, Way::decrypt);
  Block block;
  std::memcpy(&block, bytes.data(), sizeof block);
  place->rank = block.rank;
  place->shard = block.shard;
  return block.zero == 0;
}

}  // namespace lockd
