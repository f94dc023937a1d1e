// The HTTP port of a server: one request at a time, each on a connection of its own.
//
// Blocks, for a bounded time. Throws Failure when there is no answer; an answer that says no is
// one. Used by one thread at a time, except interrupt().
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockctl/api/api.h"
#include "lockctl/settings.h"
#include "lockd/types.h"

namespace lockd::cli {

struct StreamEvent {
  std::string name;
  std::string data;
};

// Server-sent events out of a stream of bytes, however it was cut into pieces. Pure.
//
//   parser.feed(bytes, [&](const StreamEvent& event) { print(event.name, event.data); });
class EventStreamParser {
 public:
  // Longer than anything a server of ours says in one event.
  static constexpr std::size_t kEventSizeMax = std::size_t{1} << 20;

  using Sink = std::function<void(const StreamEvent&)>;

  // False, and final, when an event is larger than kEventSizeMax.
  bool feed(std::string_view bytes, const Sink& sink);

 private:
  void take_line(std::string_view line, const Sink& sink);

  std::string unread_;
  StreamEvent event_;
  bool has_data_ = false;
};

class HttpClient {
 public:
  HttpClient(HttpAddress address, client::ConnectOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `target` is a path with its query. `wait` is what the server was asked to take its time for.
  ApiReply get(const std::string& target);
  // The same, with so long to connect, and again so long for the reply.
  ApiReply get_within(Duration patience, const std::string& target);
  ApiReply post(const std::string& target, const std::string& json, Duration wait = {});

  // Passes on server-sent events until the server ends the stream, which is a Failure too. Returns
  // a refusal; never an ok one.
  ApiReply follow(const std::string& target, const EventStreamParser::Sink& sink);

  // Any thread: what is under way, and everything after it, fails.
  void interrupt();

  const HttpAddress& address() const;

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace lockd::cli
