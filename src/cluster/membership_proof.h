// How two servers prove to each other that they are of one cluster: both know its secret, and
// neither says it.
//
// Each sends 32 random bytes, then an HMAC-SHA256 over both, under the secret. What it covers
// besides says which end made it, so none can be sent back to who made it; the name of the server
// that asks; and over TLS the channel, so that it proves nothing on any other. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "base/sha256.h"

namespace lockd {

// 64 hex digits.
std::string make_nonce(TokenSource& secrets);
bool is_nonce(std::string_view text);

struct Challenge {
  std::string node{};            // of who asks
  std::string asker_nonce{};     // of that
  std::string answerer_nonce{};  // and of who is asked
  std::string channel{};         // the TLS connection's own bytes; empty: there is none
};

enum class LinkEnd : std::uint8_t { asker, answerer };

// 64 hex digits. Precondition: the secret is not empty.
std::string prove(const HashedSecret& secret, const Challenge& challenge, LinkEnd end);
// In a time that says nothing of how far it is right.
bool proves(std::string_view shown, const HashedSecret& secret, const Challenge& challenge,
            LinkEnd end);

}  // namespace lockd
