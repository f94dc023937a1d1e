#include "dialogue.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

namespace lockd::bench {
namespace {

constexpr std::size_t kTokenSize = 32;
constexpr std::string_view kGrantStart = "ok ";
constexpr std::string_view kGrantEnd = " 30";

// An array of strings, which is how Redis takes a command.
std::string redis_request(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n";
    text += word;
    text += "\r\n";
  }
  return text;
}

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string http_request(std::string_view path, const std::string& body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + std::string(kHeadEnd) + body;
}

std::string http_body(std::string_view key, std::string_view more) {
  return R"({"key":")" + std::string(key) + R"(","holder":"bench",)" + std::string(more) + "}";
}

// What stands in `text` between `before` and the first byte of `behind`; empty when it does not.
std::string_view between(std::string_view text, std::string_view before, std::string_view behind) {
  const std::size_t start = text.find(before);
  if (start == std::string_view::npos) return {};
  text.remove_prefix(start + before.size());
  return text.substr(0, text.find_first_of(behind));
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string line_request(std::string_view command, std::string_view key,
                         std::string_view argument) {
  std::string text(command);
  for (const std::string_view line : {key, argument}) {
    text += '\n';
    text += line;
  }
  return text + '\n';
}

std::size_t reply_size(Protocol protocol, std::string_view unread) {
  if (protocol != Protocol::http) return unread.find('\n') + 1;  // npos + 1 is 0
  const std::size_t head = unread.find(kHeadEnd);
  if (head == std::string_view::npos) return 0;
  const std::string length(between(unread.substr(0, head + 2), "Content-Length: ", "\r"));
  const std::size_t size = head + kHeadEnd.size() + std::strtoul(length.c_str(), nullptr, 10);
  return size <= unread.size() ? size : 0;
}

Dialogue::Dialogue(Protocol protocol, std::string_view key, int wait_s)
    : protocol_(protocol), key_(key) {
  const std::string token(kTokenSize, '0');
  if (protocol == Protocol::line) {
    acquire_ = line_request("l", key, std::to_string(wait_s) + " 30");
    release_ = line_request("r", key, token);
  } else if (protocol == Protocol::http) {
    acquire_ = http_request("/v1/acquire", http_body(key, R"("ttl_ms":30000,"wait_ms":)" +
                                                              std::to_string(wait_s * 1000)));
  } else {
    // The value is as long as our token: what a client puts there to know its lock by.
    acquire_ = redis_request({"SET", key, token, "NX", "PX", "30000"});
    release_ = redis_request({"DEL", key});
  }
}

bool Dialogue::take(std::string_view reply) {
  while (reply.ends_with('\n') || reply.ends_with('\r')) reply.remove_suffix(1);
  bool good;
  if (protocol_ == Protocol::http) {
    good = take_http(reply);
  } else if (protocol_ == Protocol::redis) {
    good = reply == (releases_ ? ":1" : "+OK");
  } else {
    good = releases_ ? reply == "ok" : take_grant(reply);
  }
  releases_ = !releases_;
  return good;
}

// `ok <token> 30`; the token goes into the release.
bool Dialogue::take_grant(std::string_view reply) {
  if (reply.size() != kGrantStart.size() + kTokenSize + kGrantEnd.size()) return false;
  const std::string_view token = reply.substr(kGrantStart.size(), kTokenSize);
  release_.replace(release_.size() - 1 - kTokenSize, kTokenSize, token);
  return reply.starts_with(kGrantStart) && reply.ends_with(kGrantEnd) &&
         std::all_of(token.begin(), token.end(), is_hex);
}

bool Dialogue::take_http(std::string_view reply) {
  if (!reply.starts_with("HTTP/1.1 200 ")) return false;
  if (releases_) return reply.ends_with(R"("released":true})");
  const std::string_view token = between(reply, R"("token":)", ",}");
  release_ = http_request("/v1/release", http_body(key_, R"("token":)" + std::string(token)));
  return !token.empty();
}

}  // namespace lockd::bench
