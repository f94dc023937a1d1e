// What a Connection is made of, for those who make one.
#pragma once

#include <memory>
#include <utility>

#include "client/conversation.h"
#include "lockd/client/connection.h"

namespace lockd::client {

class Connection::Impl {
 public:
  explicit Impl(std::unique_ptr<Conversation> opened) : conversation(std::move(opened)) {}

  const std::unique_ptr<Conversation> conversation;  // never null
};

}  // namespace lockd::client
