// What is held, in the words by which a server is asked to keep it or to take it back: one key by
// its token, or several by the name that holds them.
//
// Constant once it is made; for any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "client/reply.h"
#include "client/request_lines.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"
#include "lockd/requests.h"
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
  explicit KeyClaim(const KeyItem& item) : Claim({std::string(item.key)}, item.kind) {}

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

// Several keys as a call of the API names them: by `keys`, or by `items` where they are not all
// locks that are held alone.
struct NamedItems {
  std::string_view member;
  std::string json;  // an array
};
NamedItems named_items(const KeyItems& items);

// What an answer of the API means: a refusal is what the line protocol has a word for, mostly.
// `timeout` is that others have a part of it.
Status api_status_of(std::string_view reply);

// Several keys that a name holds, all of them or none: calls of the HTTP API, over the line
// protocol's command `api`.
//
// The holds last for their lease alone: the end of a connection ends a place in the queues and
// releases nothing. No other client has the name, so a repeated request returns the first one's
// grant, and two sets of one client exclude each other.
class SetClaim final : public Claim {
 public:
  // `invalid` when no server would take the request.
  static Result<std::shared_ptr<const SetClaim>> make(const LockRequest& request,
                                                      const ConnectOptions& options);

  std::string acquire_lines(Duration wait) const;
  std::string renew_lines(const LineGrant& grant) const override;
  std::string release_lines(const LineGrant& grant) const override;

  ReadStatus read_status() const override { return api_status_of; }
  Result<LineGrant> grant_of(std::string_view reply) const;
  Result<LineRenewal> renewal_of(std::string_view reply, std::chrono::seconds lease) const override;
  std::string gone_in(std::string_view reply) const override;
  bool may_be_left_over() const override { return true; }

 private:
  SetClaim(const LockRequest& request, const ConnectOptions& options);
  JsonObject named() const;

  const NamedItems items_;
  const std::string holder_;
  const std::string note_;
  const Lease lease_;
};

}  // namespace lockd::client
