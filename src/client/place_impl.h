// What a Place is made of, for those who make one.
#pragma once

#include <memory>
#include <optional>

#include "client/conversation.h"
#include "client/hold.h"
#include "client/keeper.h"
#include "lockd/client/client.h"

namespace lockd::client {

class Place::Impl {
 public:
  Impl() = default;
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<Keeper> keeper;
  std::unique_ptr<Conversation> conversation;
  Hold::Terms terms;
  Lease lease;                     // as asked for
  std::optional<LineGrant> grant;  // when it was granted at once
};

}  // namespace lockd::client
