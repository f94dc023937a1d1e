// What a Connection is made of, for those who make one.
#pragma once

#include <memory>
#include <utility>

#include "client/line_connection.h"
#include "lockd/client/connection.h"

namespace lockd::client {

class Connection::Impl {
 public:
  explicit Impl(std::unique_ptr<LineConnection> opened) : connection(std::move(opened)) {}

  const std::unique_ptr<LineConnection> connection;  // never null
};

}  // namespace lockd::client
