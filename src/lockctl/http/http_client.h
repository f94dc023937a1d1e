// The HTTP API of a server: one request at a time, each on a connection of its own.
//
// Blocks, for a bounded time. Throws Failure when there is no answer; an answer that says no is
// one. Used by one thread at a time, except interrupt().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockctl/http/event_stream.h"
#include "lockctl/settings.h"
#include "lockd/types.h"

namespace lockd::cli {

struct HttpReply {
  unsigned status = 0;
  std::string body{};

  bool is_ok() const { return status / 100 == 2; }
};

class HttpClient {
 public:
  HttpClient(HttpAddress address, client::ConnectOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `target` is a path with its query. `wait` is what the server was asked to take its time for.
  HttpReply get(const std::string& target);
  // The same, with so long to connect, and again so long for the reply.
  HttpReply get_within(Duration patience, const std::string& target);
  HttpReply post(const std::string& target, const std::string& json, Duration wait = {});

  // Passes on server-sent events until the server ends the stream, which is a Failure too. Returns
  // a refusal; never an ok one.
  HttpReply follow(const std::string& target, const EventStreamParser::Sink& sink);

  // Any thread: what is under way, and everything after it, fails.
  void interrupt();

  const HttpAddress& address() const;

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;
};

// A value within a query.
std::string url_encoded(std::string_view text);

// Throws what a refusal means: {"error","detail"}, a line for people and an exit code. Returns when
// the reply is ok.
void require(const HttpReply& reply);

}  // namespace lockd::cli
