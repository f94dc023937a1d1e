// cluster snapshot, cluster transfer: what its leader is asked to do. The leader answers when it
// has begun; the servers are looked at until it is done.
#include <algorithm>
#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/json_text.h"
#include "lockctl/api/api.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"

namespace lockd::cli {

namespace json = boost::json;

namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kBetweenLooks = std::chrono::milliseconds(50);
constexpr Duration kBetweenAsking = std::chrono::seconds(1);
// With a server that does not answer: the others may have more to tell.
constexpr Duration kPatience = std::chrono::seconds(2);

// What a server knows of its cluster; null when it does not say.
json::value look_at(Api& api) {
  try {
    const ApiReply reply = api.get("/v1/cluster");
    if (reply.is_ok()) return parse_json(reply.body, api.server());
  } catch (const Failure&) {  // it begins anew, or is gone
  }
  return {};
}

// Until what all of them say together is enough, or --timeout is over.
bool wait_until(const Invocation& invocation, Clock::time_point began,
                const std::function<bool(const std::vector<json::value>&)>& is_enough) {
  const auto timeout = invocation.arguments.seconds("timeout").value_or(std::chrono::seconds(30));
  const auto apis = each_api_of(invocation, kPatience);
  for (;;) {
    std::vector<json::value> told;
    for (const std::unique_ptr<Api>& api : apis) told.push_back(look_at(*api));
    if (is_enough(told)) return true;
    if (Clock::now() - began >= timeout) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Duration since(Clock::time_point began) { return Clock::now() - began; }

std::string leader_of(const json::value& told) {
  const json::value* const leader = member(told, "leader");
  return leader == nullptr ? "" : text_of(*leader, "node_id");
}

// What a server itself says counts more than what others say of it.
bool leads(const std::vector<json::value>& all, const std::string& node, std::uint64_t after) {
  bool is_followed = false;
  for (const json::value& told : all) {
    if (text_of(told, "node_id") == node) return truth_of(told, "certain");
    is_followed |= leader_of(told) == node && number_of(told, "epoch") > after;
  }
  return is_followed;
}

// The answer of the leader, if there is one. Throws Failure when it says that it cannot be.
ApiReply ask_to_hand_over(Api& api, const std::string& node) {
  ApiReply reply = api.post("/v1/cluster/transfer", {{"node", node}});
  if (reply.status == 404 || reply.status == 409) {
    throw Failure(kExitConflict, in_quotes(node) + ": " + refusal_of(reply).line);
  }
  return reply;
}

// Whether the node leads already. A leader that has thought better of it, or another, says why.
bool ask_again(Api& api, const std::string& node) {
  try {
    return ask_to_hand_over(api, node).status == 200;
  } catch (const Failure& failure) {
    if (failure.code() == kExitConflict) throw;
    return false;
  }
}

std::string whole_ms_text(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace

int execute_cluster_snapshot(const Invocation& invocation) {
  const auto began = Clock::now();
  const std::unique_ptr<Api> api = api_of(invocation, "");
  const ApiReply reply = api->post("/v1/cluster/snapshot", {});
  require(reply);
  // Places in the chain are as long as each other, and have the order of their text.
  const std::string head = text_of(parse_json(reply.body, api->server()), "head");
  std::string base;
  const bool done = wait_until(invocation, began, [&](const std::vector<json::value>& all) {
    for (const json::value& told : all) base = std::max(base, text_of(told, "base"));
    return base > head;
  });
  if (!done) throw Failure(kExitTemporary, "the snapshot has begun, and is not there yet");
  const Duration took = since(began);
  if (invocation.arguments.has("json")) {
    JsonObject json;
    json.add("base", as_utf8(base));
    json.add_json("took_ms", whole_ms_text(took));
    invocation.output.line(json.finish());
  } else {
    invocation.output.line("the chain begins with a snapshot at " + printable(base) + ", after " +
                           human(took));
  }
  return kExitOk;
}

int execute_cluster_transfer(const Invocation& invocation) {
  const std::string node = invocation.arguments.operands().front();
  const auto began = Clock::now();
  const std::unique_ptr<Api> api = api_of(invocation, "");
  const ApiReply reply = ask_to_hand_over(*api, node);
  require(reply);
  const std::uint64_t epoch = number_of(parse_json(reply.body, api->server()), "epoch");
  const bool led_before = reply.status == 200;
  auto asked = Clock::now();
  const auto is_enough = [&](const std::vector<json::value>& all) {
    if (leads(all, node, epoch)) return true;
    if (Clock::now() - asked < kBetweenAsking) return false;
    asked = Clock::now();
    return ask_again(*api, node);
  };
  const bool done = led_before || wait_until(invocation, began, is_enough);
  if (!done) {
    throw Failure(kExitTemporary, "the leader was asked to hand over, and " + in_quotes(node) +
                                      " does not lead: see lockctl cluster status");
  }
  const Duration took = since(began);
  if (invocation.arguments.has("json")) {
    JsonObject json;
    json.add("node_id", as_utf8(node));
    json.add("led_before", led_before);
    json.add_json("took_ms", whole_ms_text(took));
    invocation.output.line(json.finish());
  } else {
    invocation.output.line(in_quotes(node) +
                           (led_before ? " leads already" : " leads, after " + human(took)));
  }
  return kExitOk;
}

}  // namespace lockd::cli
