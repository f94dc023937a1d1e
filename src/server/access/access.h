// Who may do what: the auth tokens and client certificates that are good now, for all sessions, and
// how they are replaced.
//
// The one place that knows secrets, and it knows them as SHA-256 only. Any thread may call
// anything. A session keeps the permit that it was given and the generation it is of; when the
// generation has changed it asks for the permit that its client has by now.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "net/tls_channel.h"
#include "server/access/access_file.h"
#include "server/access/permit.h"
#include "server/session/peer.h"
#include "server/settings/options.h"

namespace lockd {

class Access {
 public:
  using Time = std::chrono::system_clock::time_point;

  // Knows the auth tokens that the options hold; the file of --access is yet to be read.
  explicit Access(const Options& options);

  // Whether an auth token is asked for of those who show no certificate that is listed.
  bool asks_for_token() const;
  // Whether what a certificate says matters, which does not change.
  bool looks_at_certificates() const { return looks_at_certificates_; }

  // Null: nobody's. In a time that depends on the size of what is shown, not on how much of it is
  // right or of which token.
  PermitPtr find(std::string_view shown, Time now) const EXCLUDES(mutex_);
  // Null: it is not listed.
  PermitPtr find(const CertificateNames& certificate, Time now) const EXCLUDES(mutex_);
  // Of a client that has shown nothing: none at all, where something is asked for. Where nothing
  // is, admin acts are for those on this machine, and not for what they pass on for others.
  const PermitPtr& permit_for(const Peer& peer, bool is_forwarded) const;

  // Changes whenever some permit may have: at a replacement, and when one expires.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // The permit that a client with this one has now; null: none any more. Those with an auth token
  // that all share go on when that is replaced.
  PermitPtr current(const PermitPtr& permit, Time now) const EXCLUDES(mutex_);
  // The permit that the principal of another server's client has here, by its name; one without
  // rights if it has none. Never null.
  PermitPtr find_principal(const Peer& peer, Time now) const EXCLUDES(mutex_);
  // Now and then: has the generation change when a permit has expired since the last call.
  void look_for_expired(Time now) EXCLUDES(mutex_);

  // What the files hold now; as it was given where there is none. Nothing is replaced yet.
  struct Reading {
    std::vector<HashedSecret> shared{};  // auth tokens
    std::vector<Permit> permits{};
    std::string warning{};  // a line, or empty
    std::string error{};    // likewise; the rest means nothing then
  };
  Reading read_again() const;
  void replace(const Reading& reading, Time now) EXCLUDES(mutex_);

 private:
  // Under a key of its own, so that no time tells how far a digest is right.
  struct DigestHash {
    HashKey key = HashKey::random();
    std::size_t operator()(const Sha256& digest) const { return hash_bytes(bytes_of(digest), key); }
  };
  struct DigestEqual {
    bool operator()(const Sha256& a, const Sha256& b) const;
  };
  // Replaced as a whole, and never changed.
  struct Table {
    PermitPtr shared{};  // of the auth tokens that all share
    boost::unordered_flat_map<Sha256, PermitPtr, DigestHash, DigestEqual> tokens{};
    boost::unordered_flat_map<std::string, PermitPtr> certificates{};  // by Permit::shown
    boost::unordered_flat_map<std::string, PermitPtr> principals{};    // by principal_key()
  };

  void read_token_file_again(Reading& reading) const;
  static std::shared_ptr<const Table> table_of(const Reading& reading);
  std::shared_ptr<const Table> table() const EXCLUDES(mutex_);
  PermitPtr find_certificate(const Table& table, const std::string& shown) const;
  void await_next_expiry(const Table& table, Time now);

  const Options options_;
  const bool is_asked_for_;  // some proof of the two kinds that are found here
  const bool looks_at_certificates_;
  const PermitPtr nobodys_;
  const PermitPtr everybodys_;
  const PermitPtr everybodys_here_;  // on this machine

  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::int64_t> next_expiry_;  // in seconds since 1970
  std::atomic<bool> has_tokens_{false};

  mutable Mutex mutex_;
  std::shared_ptr<const Table> table_ GUARDED_BY(mutex_);
};

// GET /v1/whoami: what a client is told of itself.
std::string whoami_json(const Permit& permit, const Peer& peer);

}  // namespace lockd
