#include "loadgen/bench_dialogue.h"

#include <algorithm>
#include <cctype>

#include "base/json_text.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

namespace lockd::cli {
namespace {

constexpr std::size_t kReplySizeMax = std::size_t{1} << 20;

void refuse_garbage(bool wrong) {
  if (wrong) throw Failure(kExitProtocol, "what the server answers is no reply");
}

std::string_view without_end(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

class LineDialogue final : public Dialogue {
 public:
  LineDialogue(const std::string& key, const DialogueTerms& terms)
      : acquire_("l\n" + key + '\n' + std::to_string(terms.timeout_s) + ' ' +
                 std::to_string(terms.lease_s) + '\n'),
        release_("r\n" + key + '\n'),
        grant_end_(' ' + std::to_string(terms.lease_s)) {}

  std::string acquire() const override { return acquire_; }
  std::string release() const override { return release_ + token_ + '\n'; }

  // `ok <token> <lease>`; whatever the server's tokens look like.
  bool take_grant(std::string_view reply) override {
    reply = without_end(reply);
    if (!reply.starts_with("ok ") || !reply.ends_with(grant_end_)) return false;
    reply.remove_prefix(3);
    if (reply.size() <= grant_end_.size()) return false;
    reply.remove_suffix(grant_end_.size());
    token_ = reply;
    return token_.find(' ') == std::string::npos;
  }
  bool take_release(std::string_view reply) const override { return without_end(reply) == "ok"; }

 private:
  const std::string acquire_;
  const std::string release_;
  const std::string grant_end_;
  std::string token_;
};

class HttpDialogue final : public Dialogue {
 public:
  HttpDialogue(const std::string& key, const std::string& holder, const DialogueTerms& terms)
      : fields_(" HTTP/1.1\r\nHost: " + terms.host + "\r\nContent-Type: application/json\r\n" +
                (terms.token.empty() ? "" : "Authorization: Bearer " + terms.token + "\r\n")),
        hold_(hold_of(key, holder)),
        acquire_(acquire_of(terms)) {}

  std::string acquire() const override { return acquire_; }
  std::string release() const override {
    JsonObject json = hold_;
    json.add_json("token", token_);
    return post("/v1/release", json);
  }

  bool take_grant(std::string_view reply) override {
    constexpr std::string_view kToken = "\"token\":";
    const std::size_t at = reply.find(kToken);
    if (!is_ok(reply) || at == std::string_view::npos) return false;
    const std::string_view rest = reply.substr(at + kToken.size());
    token_ = rest.substr(0, rest.find_first_not_of("0123456789"));
    return !token_.empty();
  }
  bool take_release(std::string_view reply) const override { return is_ok(reply); }

 private:
  static bool is_ok(std::string_view reply) { return reply.starts_with("HTTP/1.1 200"); }

  static JsonObject hold_of(const std::string& key, const std::string& holder) {
    JsonObject json;
    json.add("key", key);
    json.add("holder", holder);
    return json;
  }

  std::string acquire_of(const DialogueTerms& terms) const {
    JsonObject json = hold_;
    json.add("ttl_ms", terms.lease_s * 1000);
    json.add("wait_ms", terms.timeout_s * 1000);
    return post("/v1/acquire", json);
  }

  std::string post(const char* target, JsonObject& json) const {
    const std::string body = json.finish();
    return "POST " + std::string(target) + fields_ +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  const std::string fields_;
  const JsonObject hold_;
  const std::string acquire_;
  std::string token_;
};

// The value of a field of a header, in whatever case it is named.
std::string_view field(std::string_view head, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  const auto at = std::search(head.begin(), head.end(), name.begin(), name.end(), same);
  if (at == head.end()) return {};
  std::string_view value = head.substr(static_cast<std::size_t>(at - head.begin()) + name.size());
  return trimmed(value.substr(0, value.find('\r')));
}

}  // namespace

std::unique_ptr<Dialogue> Dialogue::over_line(const std::string& key, const DialogueTerms& terms) {
  return std::make_unique<LineDialogue>(key, terms);
}

std::unique_ptr<Dialogue> Dialogue::over_http(const std::string& key, const std::string& holder,
                                              const DialogueTerms& terms) {
  return std::make_unique<HttpDialogue>(key, holder, terms);
}

std::size_t line_reply_size(std::string_view unread) {
  const std::size_t end = unread.find('\n');
  refuse_garbage(end == std::string_view::npos && unread.size() > kReplySizeMax);
  return end == std::string_view::npos ? 0 : end + 1;
}

std::size_t http_reply_size(std::string_view unread) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::size_t head = unread.find(kHeadEnd);
  refuse_garbage(unread.size() > kReplySizeMax);
  if (head == std::string_view::npos) return 0;
  const auto length =
      parse_whole(field(unread.substr(0, head + 2), "\r\nContent-Length:"), 0, kReplySizeMax);
  refuse_garbage(!length);
  const std::size_t size = head + kHeadEnd.size() + *length;
  return size <= unread.size() ? size : 0;
}

}  // namespace lockd::cli
