// What is held, in the words by which a server is asked to keep it or to take it back: one key by
// its token, or several by the name that holds them (set_claim.h).
//
// Constant once it is made; for any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/reply.h"
#include "client/request_lines.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"
#include "lockd/types.h"

namespace lockd::client {

// What a server's reply means, whatever else it says.
using ReadStatus = Status (*)(std::string_view reply);

class Claim {
 public:
  virtual ~Claim() = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  const std::vector<std::string>& keys() const { return keys_; }  // at least one
  Kind kind() const { return kind_; }                             // of the first
  // For people: "seat-12, seat-13".
  std::string name() const;

  // The lease is named, since there are servers that forget what was granted.
  virtual std::string renew_lines(const LineGrant& grant) const = 0;
  virtual std::string release_lines(const LineGrant& grant) const = 0;
  // How replies to them are read: `refused` is that it is held no more.
  virtual ReadStatus read_status() const = 0;
  virtual Result<LineRenewal> renewal_of(std::string_view reply,
                                         std::chrono::seconds lease) const = 0;
  // For people: what the server says is held no more.
  virtual std::string gone_in(std::string_view) const { return name(); }
  // Whether a part may be held on, or all with the connection gone, when the rest is lost.
  virtual bool may_be_left_over() const { return false; }

 protected:
  Claim(std::vector<std::string> keys, Kind kind) : keys_(std::move(keys)), kind_(kind) {}

 private:
  const std::vector<std::string> keys_;
  const Kind kind_;
};

class KeyClaim final : public Claim {
 public:
  KeyClaim(std::string key, Kind kind) : Claim({std::move(key)}, kind) {}

  std::string renew_lines(const LineGrant& grant) const override {
    return *client::renew_lines(named(grant), grant.lease);
  }
  std::string release_lines(const LineGrant& grant) const override {
    return *client::release_lines(named(grant));
  }
  ReadStatus read_status() const override { return status_of; }
  Result<LineRenewal> renewal_of(std::string_view reply,
                                 std::chrono::seconds lease) const override {
    return client::renewal_of(reply, lease);
  }

 private:
  LineHold named(const LineGrant& grant) const {
    return {.key = keys().front(), .token = grant.token, .kind = kind()};
  }
};

inline std::string Claim::name() const {
  std::string all;
  for (const std::string& key : keys_) all += (all.empty() ? "" : ", ") + key;
  return all;
}

}  // namespace lockd::client
