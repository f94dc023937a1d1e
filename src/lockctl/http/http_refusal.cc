#include "lockctl/http/http_refusal.h"

#include <boost/json/parse.hpp>

#include "lockctl/http/json.h"
#include "lockctl/output/text.h"

namespace lockd::cli {
namespace {

ExitCode code_of(std::string_view error, unsigned status) {
  for (const char* one : {"held", "wait_timeout", "expired", "stale_token", "not_holder"}) {
    if (error == one) return kExitConflict;
  }
  if (error == "bad_request" || error == "limit_mismatch") return kExitData;
  if (status == 401 || status == 403) return kExitNoPermission;
  if (status == 429 || status == 503) return kExitTemporary;
  return kExitProtocol;
}

}  // namespace

HttpRefusal refusal_of(const HttpReply& reply) {
  HttpRefusal refusal;
  boost::system::error_code no_json;
  const auto body = boost::json::parse(reply.body, no_json);
  if (!no_json) {
    refusal.error = text_of(body, "error");
    refusal.line = printable(text_of(body, "detail"));
    if (refusal.line.empty()) refusal.line = printable(refusal.error);
    const std::string holder = text_of(body, "holder");
    if (!holder.empty()) refusal.line += " (holder " + in_quotes(holder) + ")";
  }
  if (refusal.line.empty()) {
    refusal.line = "the server answers with HTTP status " + std::to_string(reply.status);
  }
  refusal.code = code_of(refusal.error, reply.status);
  return refusal;
}

}  // namespace lockd::cli
