#include "lockctl/api/api.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/json_text.h"
#include "lockctl/api/json.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

std::string url_encoded(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

struct QueryValue {
  std::string operator()(const std::string& text) const { return url_encoded(text); }
  std::string operator()(std::uint64_t number) const { return std::to_string(number); }
  std::string operator()(bool truth) const { return truth ? "true" : "false"; }
  std::string operator()(const JsonText& json) const { return url_encoded(json.text); }
};

struct Member {
  JsonObject& object;
  std::string_view name;

  void operator()(const auto& value) const { object.add(name, value); }
  void operator()(const JsonText& json) const { object.add_json(name, json.text); }
};

// The member of a refusal that names the holder; null when the key is free.
const boost::json::value& held_by_of(const boost::json::value& refusal) {
  static const boost::json::value free;
  const boost::json::value* const held_by = member(refusal, "held_by");
  return held_by == nullptr ? free : *held_by;
}

// "'seat-12' is held by 'cart-7'", of one of the keys that are in the way of a request for several.
std::string conflict_text(const boost::json::value& conflict) {
  const std::string key = in_quotes(text_of(conflict, "key"));
  const std::string holder = text_of(held_by_of(conflict), "holder");
  if (truth_of(conflict, "own")) return key + " is held by us already";
  return key + (holder.empty() ? " is waited for" : " is held by " + in_quotes(holder));
}

}  // namespace

std::string query_of(const Parameters& parameters) {
  std::string query;
  for (const Parameter& one : parameters) {
    query += (query.empty() ? '?' : '&') + std::string(one.name) + '=' +
             std::visit(QueryValue{}, one.value);
  }
  return query;
}

std::string object_of(const Parameters& parameters) {
  JsonObject object;
  for (const Parameter& one : parameters) {
    std::visit(Member{object, one.name}, one.value);
  }
  return object.finish();
}

void for_each_listed(Api& api, const std::string& path, const Parameters& question,
                     std::string_view list, const std::function<std::uint64_t()>& wanted,
                     const std::function<void(const boost::json::value&)>& take) {
  std::uint64_t size = 1000;  // as much as a server gives at once
  for (std::string after; wanted() > 0;) {
    Parameters parameters = question;
    parameters.push_back({"limit", std::min(size, wanted())});
    if (!after.empty()) parameters.push_back({"after", after});
    const ApiReply reply = api.get(path, parameters);
    if (size > 1 && !reply.is_ok() && refusal_of(reply).error == "too_large") {
      size /= 2;
      continue;
    }
    require(reply);
    const auto page = parse_json(reply.body, api.server());
    for (const auto& one : array_of(page, list)) take(one);
    std::string next = text_of(page, "next");
    if (next.empty() || next == after) return;
    after = std::move(next);
  }
}

ApiReply ask_about_key(Api& api, const Parameters& question) {
  ApiReply reply = api.get("/v1/locks", question);
  if (reply.is_ok() || refusal_of(reply).error != "too_large") return reply;
  Parameters of_less = question;
  of_less.push_back({"limit", std::uint64_t{100}});
  return api.get("/v1/locks", of_less);
}

void require(const ApiReply& reply) {
  if (reply.is_ok()) return;
  const Refusal refusal = refusal_of(reply);
  throw Failure(refusal.code, refusal.line);
}

namespace {

ExitCode code_of(std::string_view error, unsigned status) {
  for (const char* one : {"held", "wait_timeout", "expired", "stale_token", "not_holder"}) {
    if (error == one) return kExitConflict;
  }
  for (const char* one : {"bad_request", "limit_mismatch", "mode_mismatch", "permits_mismatch"}) {
    if (error == one) return kExitData;
  }
  if (status == 401 || status == 403) return kExitNoPermission;
  if (status == 429 || status == 503) return kExitTemporary;
  return kExitProtocol;
}

}  // namespace

Refusal refusal_of(const ApiReply& reply) {
  Refusal refusal;
  boost::system::error_code no_json;
  const auto body = boost::json::parse(reply.body, no_json);
  if (!no_json) {
    refusal.error = text_of(body, "error");
    refusal.line = printable(text_of(body, "detail"));
    if (refusal.line.empty()) refusal.line = printable(refusal.error);
    const std::string key = text_of(body, "key");
    if (!key.empty()) refusal.line = in_quotes(key) + ": " + refusal.line;
    const boost::json::value& held_by = held_by_of(body);
    const std::string holder = text_of(held_by, "holder");
    const std::string who = identity_text(identity_of(held_by));
    if (!holder.empty()) {
      refusal.line += " (holder " + in_quotes(holder) + (who.empty() ? "" : ", " + who) + ')';
    }
    std::string_view before = ": ";
    for (const auto& conflict : array_of(body, "conflicts")) {
      refusal.line += std::exchange(before, ", ");
      refusal.line += conflict_text(conflict);
    }
  }
  if (refusal.line.empty()) {
    refusal.line = "the server answers with HTTP status " + std::to_string(reply.status);
  }
  refusal.code = code_of(refusal.error, reply.status);
  return refusal;
}

}  // namespace lockd::cli
