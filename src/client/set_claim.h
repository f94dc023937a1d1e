// Several keys that a name holds, all of them or none: calls of the HTTP API, over the line
// protocol's command `api`.
//
// What is so held lives by its lease alone: a connection that ends gives up a place in the queues,
// and releases nothing. The name is one that nobody else has, so that to ask twice is to ask once,
// and two sets of one client exclude each other, too.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "client/claim.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"
#include "lockd/requests.h"

namespace lockd::client {

// Several keys as a call of the API names them: by `keys`, or by `items` where they are not all
// locks that are held alone.
struct NamedItems {
  std::string_view member;
  std::string json;  // an array
};
NamedItems named_items(const std::vector<SetItem>& items);

// What an answer of the API means: a refusal is what the line protocol has a word for, mostly.
// `timeout` is that others have a part of it.
Status api_status_of(std::string_view reply);

class SetClaim final : public Claim {
 public:
  // `invalid` when no server would take the request.
  static Result<std::shared_ptr<const SetClaim>> make(const SetRequest& request,
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
  SetClaim(const SetRequest& request, const ConnectOptions& options);
  JsonObject named() const;

  const NamedItems items_;
  const std::string holder_;
  const std::string note_;
  const Lease lease_;
};

}  // namespace lockd::client
