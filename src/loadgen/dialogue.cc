#include "loadgen/dialogue.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>

#include "base/json_text.h"

namespace lockd::loadgen {
namespace {

constexpr std::size_t kReplySizeMax = std::size_t{1} << 20;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kGrantStart = "ok ";

void refuse_garbage(bool wrong) {
  if (wrong) throw LoadError(LoadError::Why::garbled, "what the server answers is no reply");
}

std::string_view without_end(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

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

std::string post(std::string_view path, std::string_view fields, std::string_view body) {
  return "POST " + std::string(path) + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + std::string(kHeadEnd) +
         std::string(body);
}

// What Content-Length says; nothing else will do.
std::size_t content_length(std::string_view head) {
  constexpr std::string_view kName = "\r\ncontent-length:";
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  };
  const auto at = std::search(head.begin(), head.end(), kName.begin(), kName.end(), same);
  refuse_garbage(at == head.end());
  std::string_view value = head.substr(static_cast<std::size_t>(at - head.begin()) + kName.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
  refuse_garbage(error != std::errc() || size > kReplySizeMax || (*end != '\r' && *end != ' '));
  return size;
}

std::size_t http_reply_size(std::string_view unread) {
  const std::size_t head = unread.find(kHeadEnd);
  if (head == std::string_view::npos) return 0;
  const std::size_t size =
      head + kHeadEnd.size() + content_length(unread.substr(0, head + kHeadEnd.size()));
  return size <= unread.size() ? size : 0;
}

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
  const std::size_t size = protocol == Protocol::http ? http_reply_size(unread)
                                                      : unread.find('\n') + 1;  // npos + 1 is 0
  refuse_garbage(size == 0 && unread.size() > kReplySizeMax);
  return size;
}

Dialogue::Dialogue(Protocol protocol, std::string_view key, const DialogueTerms& terms)
    : protocol_(protocol), lease_(' ' + std::to_string(terms.lease_s)) {
  switch (protocol) {
    case Protocol::line:
      acquire_ = line_request("l", key, std::to_string(terms.wait_s) + lease_);
      release_start_ = "r\n" + std::string(key) + '\n';
      break;
    case Protocol::http: begin_http(key, terms); break;
    case Protocol::redis:
      // The value is as long as our token: what a client puts there to know its lock by.
      acquire_ = redis_request(
          {"SET", key, std::string(32, '0'), "NX", "PX", std::to_string(terms.lease_s * 1000)});
      release_ = redis_request({"DEL", key});
      break;
  }
}

void Dialogue::begin_http(std::string_view key, const DialogueTerms& terms) {
  fields_ = " HTTP/1.1\r\nHost: " + terms.host + "\r\nContent-Type: application/json\r\n" +
            (terms.auth_token.empty() ? "" : "Authorization: Bearer " + terms.auth_token + "\r\n");
  JsonObject json;
  json.add("key", key);
  json.add("holder", terms.holder);
  JsonObject acquire = json;
  acquire.add("ttl_ms", terms.lease_s * 1000);
  acquire.add("wait_ms", terms.wait_s * 1000);
  acquire_ = post("/v1/acquire", fields_, acquire.finish());
  release_start_ = json.finish();
  release_start_.back() = ',';
  release_start_ += "\"token\":";
}

bool Dialogue::take(std::string_view reply) {
  bool good = false;
  switch (protocol_) {
    case Protocol::line:
      good = releases_ ? without_end(reply) == "ok" : take_line_grant(without_end(reply));
      break;
    case Protocol::http:
      good = reply.starts_with("HTTP/1.1 200 ") &&
             (releases_ ? reply.ends_with("\"released\":true}\n") : take_http_grant(reply));
      break;
    case Protocol::redis: good = without_end(reply) == (releases_ ? ":1" : "+OK"); break;
  }
  if (good) releases_ = !releases_;
  return good;
}

// `ok <token> <lease>`, whatever the server's tokens look like.
bool Dialogue::take_line_grant(std::string_view reply) {
  if (!reply.starts_with(kGrantStart) || !reply.ends_with(lease_)) return false;
  if (reply.size() <= kGrantStart.size() + lease_.size()) return false;
  reply.remove_prefix(kGrantStart.size());
  reply.remove_suffix(lease_.size());
  release_.assign(release_start_).append(reply).push_back('\n');
  return reply.find(' ') == std::string_view::npos;
}

bool Dialogue::take_http_grant(std::string_view reply) {
  constexpr std::string_view kToken = "\"token\":";
  const std::size_t at = reply.find(kToken);
  if (at == std::string_view::npos) return false;
  reply.remove_prefix(at + kToken.size());
  const std::string token(reply.substr(0, reply.find_first_not_of("0123456789")));
  release_ = post("/v1/release", fields_, release_start_ + token + '}');
  return !token.empty();
}

}  // namespace lockd::loadgen
