#include "support/http_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <regex>
#include <thread>

#include "lockd/batch.h"
#include "server/server.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds until(ClientSocket::Clock::time_point deadline) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(deadline -
                                                               ClientSocket::Clock::now());
}

// Lines, each with its CR LF, the first a status line.
bool parse_head(std::string_view head, HttpReply& reply) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  if (!head.starts_with(kVersion) || head.find("\r\n") == std::string_view::npos) return false;
  const char* const digits = head.data() + kVersion.size();
  if (std::from_chars(digits, digits + 3, reply.status).ptr != digits + 3) return false;
  head.remove_prefix(head.find("\r\n") + 2);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(line.size() + 2);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || line.find_first_of("\r\n") < line.size()) return false;
    reply.fields.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return true;
}

// "event: x\ndata: y" as "x y".
std::string event_of(const std::string& lines) {
  constexpr std::string_view kEvent = "event: ";
  constexpr std::string_view kData = "\ndata: ";
  const std::size_t data = lines.find(kData);
  const bool is_event = lines.starts_with(kEvent) && data != std::string::npos &&
                        lines.find('\n', data + 1) == std::string::npos;
  if (!is_event) return "<no event>" + lines;
  return lines.substr(kEvent.size(), data - kEvent.size()) + " " +
         lines.substr(data + kData.size());
}

HttpReply no_reply(std::string instead) { return {.status = 0, .body = std::move(instead)}; }

}  // namespace

std::string HttpReply::field(std::string_view name) const {
  std::string found;
  bool seen = false;
  for (const auto& [field, value] : fields) {
    if (!boost::beast::iequals(field, name)) continue;
    if (std::exchange(seen, true)) return "<twice>";
    found = value;
  }
  return found;
}

boost::json::value HttpReply::json() const {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(body, error);
  if (error) return nullptr;
  return value;
}

std::int64_t HttpReply::number(std::string_view member) const {
  const boost::json::value value = json();
  const boost::json::value* found =
      value.is_object() ? value.as_object().if_contains(member) : nullptr;
  EXPECT_TRUE(found != nullptr && found->is_int64()) << member << " of " << body;
  return found != nullptr && found->is_int64() ? found->as_int64() : 0;
}

std::string HttpReply::text(std::string_view member) const {
  const boost::json::value value = json();
  const boost::json::value* found =
      value.is_object() ? value.as_object().if_contains(member) : nullptr;
  EXPECT_TRUE(found != nullptr && found->is_string()) << member << " of " << body;
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

std::string HttpClient::written(std::string_view method, std::string_view target,
                                std::string_view body) const {
  std::string text(method);
  text += " ";
  text += target;
  text += " HTTP/1.1\r\nHost: " + host + "\r\n" + fields;
  if (method == "POST" || !body.empty()) {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  text += "\r\n";
  text += body;
  return text;
}

HttpReply HttpClient::ask(std::string_view method, std::string_view target, std::string_view body) {
  send(written(method, target, body));
  return read_reply(method == "HEAD");
}

HttpReply HttpClient::read_reply(bool to_head, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  HttpReply reply = read_head(patience);
  if (reply.status == 0 || to_head) return reply;
  if (std::string instead = read_body(reply, deadline); !instead.empty()) {
    return no_reply(std::move(instead));
  }
  return reply;
}

HttpReply HttpClient::read_head(std::chrono::milliseconds patience) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  if (std::string instead = need(kHeadEnd, Clock::now() + patience); !instead.empty()) {
    return no_reply(std::move(instead));
  }
  HttpReply reply;
  std::string head = take(unread_.find(kHeadEnd) + kHeadEnd.size());
  if (!parse_head(std::string_view(head).substr(0, head.size() - 2), reply)) {
    return no_reply("<no reply>" + head);
  }
  return reply;
}

// What came instead of it, or nothing.
std::string HttpClient::read_body(HttpReply& reply, Clock::time_point deadline) {
  const std::string length = reply.field("Content-Length");
  const std::string coding = reply.field("Transfer-Encoding");
  const bool has_none = reply.status < 200 || reply.status == 204 || reply.status == 304;
  if (has_none) return length.empty() && coding.empty() ? "" : "<a body that cannot be>";
  if (length.empty() == coding.empty()) return "<no length, or two>";
  if (!length.empty()) {
    const std::size_t size = std::stoul(length);
    if (std::string instead = need(size, deadline); !instead.empty()) return instead;
    reply.body = take(size);
    return {};
  }
  for (std::string chunk;; reply.body += chunk) {
    std::string instead = read_chunk(&chunk, deadline);
    if (!instead.empty() || chunk.empty()) return instead;
  }
}

// The last chunk is empty.
std::string HttpClient::read_chunk(std::string* chunk, Clock::time_point deadline) {
  if (std::string instead = need("\r\n", deadline); !instead.empty()) return instead;
  const std::string line = take(unread_.find("\r\n") + 2);
  std::size_t size = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  if (parsed.ec != std::errc() || *parsed.ptr != '\r') return "<no chunk>" + line;
  if (std::string instead = need(size + 2, deadline); !instead.empty()) return instead;
  *chunk = take(size + 2);
  if (!chunk->ends_with("\r\n")) return "<no chunk>" + *chunk;
  chunk->resize(size);
  return {};
}

std::string HttpClient::read_end(std::chrono::milliseconds patience) {
  if (unread_.empty()) {
    const std::string_view instead = append_some(unread_, patience);
    if (!instead.empty()) return std::string(instead);
  }
  return take(unread_.size());
}

HttpReply HttpClient::open_stream(std::string_view target) {
  send(written("GET", target));
  HttpReply reply = read_head();
  chunked_ = reply.field("Transfer-Encoding") == "chunked";
  return reply;
}

std::string HttpClient::read_event(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const std::size_t end = event_.find("\n\n");
    if (end != std::string::npos) {
      const std::string event = event_.substr(0, end);
      event_.erase(0, end + 2);
      if (event.starts_with(":")) continue;  // a ping
      return event_of(event);
    }
    std::string more;
    std::string instead;
    if (chunked_) {
      if (unread_.empty()) instead = append_some(unread_, until(deadline));
      // What has begun is read to its end: half a chunk could not be put back.
      if (instead.empty()) instead = read_chunk(&more, Clock::now() + kPatience);
      if (instead.empty() && more.empty()) return std::string(kEnd);
    } else {
      if (unread_.empty()) instead = append_some(unread_, until(deadline));
      more = take(unread_.size());
    }
    if (!instead.empty()) return chunked_ && instead == kEnd ? "<cut off>" : instead;
    event_ += more;
  }
}

std::string HttpClient::need(std::size_t size, Clock::time_point deadline) {
  while (unread_.size() < size) {
    const std::string_view instead = append_some(unread_, until(deadline));
    if (instead.empty()) continue;
    return unread_.empty() ? std::string(instead) : std::string(instead) + unread_;
  }
  return {};
}

std::string HttpClient::need(std::string_view end, Clock::time_point deadline) {
  while (unread_.find(end) == std::string::npos) {
    std::string instead = need(unread_.size() + 1, deadline);
    if (!instead.empty()) return instead;
  }
  return {};
}

std::string HttpClient::take(std::size_t size) {
  std::string taken = unread_.substr(0, size);
  unread_.erase(0, size);
  return taken;
}

Options http_options() {
  Options options = line_options();
  options.http_addr = Endpoint{.host = "127.0.0.1"};
  options.metrics = true;
  return options;
}

HttpServer::HttpServer(const Options& options)
    : LineServer(options), http_port_(server().http_port()) {}

HttpClient HttpServer::browse(const std::string& address) {
  return HttpClient({.port = http_port_, .tls = tls(), .host = address});
}

std::string shown(const HttpReply& reply) {
  if (reply.status == 0) return reply.body;
  std::string_view body = reply.body;
  const bool ends = body.ends_with('\n');
  if (ends) body.remove_suffix(1);
  const bool should_end = reply.field("Content-Type").starts_with("application/json");
  const std::string_view lack = should_end && !ends && !body.empty() ? " (no line feed)" : "";
  return std::to_string(reply.status) + " " + shown(body) + std::string(lack);
}

std::string shown(std::string_view text) {
  static const std::regex detail(R"re(,"detail":"(\\.|[^"\\])*")re");
  static const std::regex token(R"re(("(?:token|fence)":)[1-9]\d*)re");
  static const std::regex unix_ms(R"re(("[a-z_]*unix_ms":)\d+)re");
  static const std::regex ms(R"re(("(waited_ms|held_ms|idle_ms|expires_in_ms)":)\d+)re");
  static const std::regex connection(R"re((tcp:)\d+)re");
  static const std::regex client(R"re(,"(client_id":\d+|peer":"[^"]*"))re");
  std::string masked = std::regex_replace(std::string(text), detail, "");
  masked = std::regex_replace(masked, token, "$1<token>");
  masked = std::regex_replace(masked, unix_ms, "$1<time>");
  masked = std::regex_replace(masked, ms, "$1<ms>");
  masked = std::regex_replace(masked, client, "");
  return std::regex_replace(masked, connection, "$1<id>");
}

std::string held_by(std::string_view holder, std::string_view mode) {
  std::string json = R"("held_by":{"holder":")" + std::string(holder) + R"(","fence":<token>,)";
  if (!mode.empty()) json += R"("mode":")" + std::string(mode) + R"(",)";
  return json + R"("since_unix_ms":<time>,"expires_at_unix_ms":<time>})";
}

std::string hold_json(std::string_view key, std::string_view holder, std::string_view more) {
  std::string json =
      R"({"key":")" + std::string(key) + R"(","holder":")" + std::string(holder) + "\"";
  if (!more.empty()) json += "," + std::string(more);
  return json + "}";
}

std::string hold_json(std::string_view key, std::string_view holder, std::int64_t token,
                      std::string_view more) {
  std::string members = "\"token\":" + std::to_string(token);
  if (!more.empty()) members += "," + std::string(more);
  return hold_json(key, holder, members);
}

void take_many_keys(HttpServer& server) {
  Engine& engine = server.server().engine();
  Batch batch(engine);
  const std::string tail(240, 'k');
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = std::to_string(i) + tail;
    ASSERT_EQ(batch.acquire({.keys = key, .holder = "a", .ttl = std::chrono::hours(1)}).outcome,
              Outcome::ok);
  }
  ASSERT_TRUE(engine.wait_durable(batch.commit()));
}

bool await_line(HttpClient& client, std::string_view key, std::int64_t waiters) {
  const auto deadline = ClientSocket::Clock::now() + ClientSocket::kPatience;
  const std::string part = "\"waiters\":" + std::to_string(waiters) + ",";
  HttpReply reply;
  do {
    reply = client.get("/v1/locks?idle=true&key=" + std::string(key));
    if (reply.body.find(part) != std::string::npos) return true;
    std::this_thread::sleep_for(1ms);
  } while (reply.status == 200 && ClientSocket::Clock::now() < deadline);
  ADD_FAILURE() << waiters << " should wait for " << key << ": " << shown(reply);
  return false;
}

}  // namespace lockd
