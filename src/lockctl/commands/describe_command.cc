// lockctl describe.
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <string>

#include "lockctl/commands/commands.h"
#include "lockctl/http/fetch.h"
#include "lockctl/http/json.h"
#include "lockctl/output/key_table.h"
#include "lockctl/output/text.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

std::string description_of(const KeyView& key, const Style& style) {
  std::string out = style.bold(printable(key.key)) + "  " + kind_text(key.kind);
  if (key.kind == Kind::semaphore) out += " of " + std::to_string(key.limit);
  out += ", " + std::to_string(key.holders) + (key.holders == 1 ? " holder, " : " holders, ") +
         std::to_string(key.waiters) + " waiting";
  if (key.idle_for) out += ", idle for " + human(*key.idle_for);
  out += '\n';
  Table holds({"HOLDER", "FENCE>", "HELD>", "EXPIRES>"});
  for (const HoldView& hold : key.holds) {
    holds.add(
        {hold.holder, fence_text(hold.fence), if_known(hold.held_for), if_known(hold.expires_in)});
  }
  if (!holds.empty()) out += '\n' + holds.text(style);
  Table queue({"#>", "WAITER", "WAITED>"});
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    queue.add({std::to_string(i + 1), key.queue[i].holder, human(key.queue[i].waited)});
  }
  if (!queue.empty()) out += '\n' + queue.text(style);
  return out;
}

}  // namespace

int execute_describe(const Invocation& invocation) {
  const std::string& key = invocation.arguments.operands().front();
  const HttpReply reply =
      require_http(invocation)->get("/v1/locks?idle=true&key=" + url_encoded(key));
  require(reply);
  const json::value page = parse_json(reply.body, "the server");
  bool found = false;
  for (const json::value& lock : array_of(page, "locks")) {
    if (text_of(lock, "key") != key) continue;
    if (invocation.arguments.has("json")) {
      invocation.output.line(json::serialize(lock));
    } else {
      invocation.output.write((found ? "\n" : "") +
                              description_of(key_view(lock), invocation.output.style()));
    }
    found = true;
  }
  if (found) return kExitOk;
  std::fprintf(stderr, "lockctl: the server knows no key %s: it is free\n", in_quotes(key).c_str());
  return kExitConflict;
}

}  // namespace lockd::cli
