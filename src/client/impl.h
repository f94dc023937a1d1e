// What a Connection and a Place are made of, for those who make one.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "client/hold.h"
#include "client/line_connection.h"
#include "client/renewer.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"

namespace lockd::client {

class Connection::Impl {
 public:
  explicit Impl(std::unique_ptr<LineConnection> opened) : connection(std::move(opened)) {}

  const std::unique_ptr<LineConnection> connection;  // never null
};

class Place::Impl {
 public:
  Impl() = default;
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::shared_ptr<Renewer> renewer;
  std::unique_ptr<LineConnection> connection;
  Hold::Terms terms;
  Lease lease;                     // as asked for
  std::optional<LineGrant> grant;  // when it was granted at once
};

}  // namespace lockd::client
