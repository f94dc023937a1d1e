// A blocking HTTP client on a real socket, which sends any bytes at all and reads what comes, and a
// server to talk to, for tests.
//
//   HttpServer server;
//   HttpClient client = server.browse();
//   EXPECT_EQ(shown(client.post("/v1/acquire", R"({"key":"k","holder":"a"})")),
//             R"(200 {"key":"k","holder":"a","token":<token>,"ttl_ms":33000,"expires_in_ms":<ms>,)"
//             R"("expires_at_unix_ms":<time>})");
//
// It is no lenient reader: a reply that is not well framed is told as such.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/line_client.h"

namespace lockd {

struct HttpReply {
  int status = 0;  // 0: there was no reply; `body` says what came instead
  std::vector<std::pair<std::string, std::string>> fields{};
  std::string body{};

  // The value of the only field of that name; empty when there is none, "<twice>" when there are
  // more.
  std::string field(std::string_view name) const;
  // Null when the body is none.
  boost::json::value json() const;
  // That member of the body.
  std::int64_t number(std::string_view member) const;
  std::string text(std::string_view member) const;
};

class HttpClient : public ClientSocket {
 public:
  explicit HttpClient(const To& to) : ClientSocket(to) {}

  // Sent with every request that is written here: whole lines.
  std::string fields{};
  std::string host = "localhost";

  std::string written(std::string_view method, std::string_view target,
                      std::string_view body = {}) const;
  HttpReply ask(std::string_view method, std::string_view target, std::string_view body = {});
  HttpReply get(std::string_view target) { return ask("GET", target); }
  HttpReply post(std::string_view target, std::string_view body) {
    return ask("POST", target, body);
  }

  // A reply to HEAD has a length and no body.
  HttpReply read_reply(bool to_head = false, std::chrono::milliseconds patience = kPatience);
  // The head of a reply whose body is read as it comes.
  HttpReply read_head(std::chrono::milliseconds patience = kPatience);
  // What is next when no reply should be: kEnd, kReset, kSilence, or the bytes that came.
  std::string read_end(std::chrono::milliseconds patience = kPatience);

  // Begins a stream of server-sent events: its head.
  HttpReply open_stream(std::string_view target);
  // "event data", kEnd when the stream was ended as it should be, or what came instead.
  std::string read_event(std::chrono::milliseconds patience = kPatience);

 private:
  // Until so much is there, or `end` is; what came instead, or nothing.
  std::string need(std::size_t size, Clock::time_point deadline);
  std::string need(std::string_view end, Clock::time_point deadline);
  std::string read_chunk(std::string* chunk, Clock::time_point deadline);
  std::string read_body(HttpReply& reply, Clock::time_point deadline);
  std::string take(std::size_t size);

  std::string unread_;
  bool chunked_ = false;  // the stream
  std::string event_;     // what has come of the next
};

// line_options(), and HTTP on 127.0.0.1 at any free port.
Options http_options();

class HttpServer : public LineServer {
 public:
  explicit HttpServer(const Options& options = http_options());

  HttpClient browse(const std::string& address = "127.0.0.1");
  std::uint16_t http_port() const { return http_port_; }

 private:
  const std::uint16_t http_port_;
};

// The status and the body; tokens and times, which vary, replaced by `<token>`, `<time>` and
// `<ms>`, the ids of connections by `<id>`, and without the detail of an error, `client_id` and
// `peer`.
std::string shown(const HttpReply& reply);
// The same of a body or an event.
std::string shown(std::string_view text);

// The member `held_by` of a refusal as shown() has it, of a client without a name and a note.
// Without `mode`: of a semaphore.
std::string held_by(std::string_view holder, std::string_view mode = {});

// {"key":"k","holder":"a"} and what else there is: R"("ttl_ms":5)".
std::string hold_json(std::string_view key, std::string_view holder, std::string_view more = {});
std::string hold_json(std::string_view key, std::string_view holder, std::int64_t token,
                      std::string_view more = {});

// Keys enough for statistics that are more than sockets hold.
void take_many_keys(HttpServer& server);

// Until that many wait for the key; false, with a failure of the test, when that does not come
// about.
bool await_line(HttpClient& client, std::string_view key, std::int64_t waiters);

}  // namespace lockd
