// A connection of `bench`: requests go out, whole replies come in, each to the lane whose turn it
// is. Plain or over TLS. All of them live on one loop, and one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockd/client/address.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

class LoadConnection {
 public:
  using ReplySize = std::size_t (*)(std::string_view unread);
  using OnReply = std::function<void(std::string_view reply)>;

  struct Terms {
    client::Address address;
    const client::ConnectOptions& options;
    boost::asio::ssl::context* tls;  // null: plain
    ReplySize reply_size;
    bool sends_secret;  // as the first request of the line protocol
  };

  // Connects, and returns when it has. Throws Failure; what goes wrong later is thrown by the loop.
  static std::unique_ptr<LoadConnection> open(boost::asio::io_context& loop, const Terms& terms);
  virtual ~LoadConnection() = default;

  // Sends a request, in this turn of the loop or the next. Its reply is passed to `on_reply`.
  virtual void ask(std::string_view request, OnReply on_reply) = 0;
};

}  // namespace lockd::cli
