#include "cluster/membership_proof.h"

#include "base/coding.h"

namespace lockd {
namespace {

// Each behind its size: no two challenges look alike.
void add(std::string& covered, std::string_view text) {
  char size[sizeof(std::uint64_t)];
  store<std::uint64_t>(size, text.size());
  covered.append(size, sizeof size);
  covered += text;
}

}  // namespace

std::string make_nonce(TokenSource& secrets) {
  Sha256 bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    store<std::uint64_t>(reinterpret_cast<char*>(bytes.data()) + i, secrets.next());
  }
  return hex_of(bytes);
}

bool is_nonce(std::string_view text) { return parse_sha256(text).has_value(); }

std::string prove(const HashedSecret& secret, const Challenge& challenge, LinkEnd end) {
  std::string covered;
  add(covered, end == LinkEnd::asker ? "lockd link 1, asker" : "lockd link 1, answerer");
  add(covered, challenge.node);
  add(covered, challenge.asker_nonce);
  add(covered, challenge.answerer_nonce);
  add(covered, challenge.channel);
  return hex_of(hmac_sha256(bytes_of(secret.digest()), covered));
}

bool proves(std::string_view shown, const HashedSecret& secret, const Challenge& challenge,
            LinkEnd end) {
  return equal_in_constant_time(shown, prove(secret, challenge, end));
}

}  // namespace lockd
