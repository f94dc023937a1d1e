#include "dialogue.h"

#include <algorithm>
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

Dialogue::Dialogue(Protocol protocol, std::string_view key, int wait_s) : protocol_(protocol) {
  const std::string token(kTokenSize, '0');
  if (protocol == Protocol::line) {
    acquire_ = line_request("l", key, std::to_string(wait_s) + " 30");
    release_ = line_request("r", key, token);
  } else {
    // The value is as long as our token: what a client puts there to know its lock by.
    acquire_ = redis_request({"SET", key, token, "NX", "PX", "30000"});
    release_ = redis_request({"DEL", key});
  }
}

bool Dialogue::take(std::string_view reply) {
  bool good;
  if (protocol_ == Protocol::redis) {
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

}  // namespace lockd::bench
