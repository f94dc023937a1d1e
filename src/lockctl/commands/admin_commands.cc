// What ends or changes what others have: release --force, disconnect, resize.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "lockctl/api/api.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

std::string reason_of(const Invocation& invocation, const std::string& command) {
  if (const auto reason = invocation.arguments.text("reason")) return std::string(*reason);
  throw Failure(kExitUsage, command + " needs --reason TEXT, for those who ask why later");
}

// The status to exit with. Throws what a refusal means.
int finish(const Invocation& invocation, const ApiReply& reply) {
  const bool is_told = reply.is_ok() || refusal_of(reply).code == kExitConflict;
  if (is_told && invocation.arguments.has("json")) invocation.output.line(trimmed(reply.body));
  require(reply);
  return kExitOk;
}

// --- release --force ---

// What to end: one hold of the key, or all.
struct Target {
  Kind kind = Kind::lock;
  std::vector<HoldView> holds{};  // as far as the server tells of them
  std::optional<Fence> fence{};   // none: all of them
};

// The lock of that name, or the semaphore: whichever is held.
KeyView held_key(const Invocation& invocation, Api& api, const std::string& key) {
  const ApiReply reply = ask_about_key(api, {{"key", key}});
  require(reply);
  std::optional<KeyView> found;
  const auto page = parse_json(reply.body, api.server());
  for (const auto& one : array_of(page, "locks")) {
    KeyView view = key_view(one);
    const bool fits = view.kind == Kind::semaphore || !invocation.arguments.has("semaphore");
    if (!fits || view.holders == 0) continue;
    if (!found || view.kind == Kind::lock) found = std::move(view);
  }
  if (found) return *found;
  throw Failure(kExitConflict, "nobody holds " + in_quotes(key));
}

Target target_of(const Invocation& invocation, KeyView key) {
  if (invocation.arguments.has("all")) return {.kind = key.kind, .holds = std::move(key.holds)};
  const auto fence = invocation.arguments.whole("fence");
  if (fence) std::erase_if(key.holds, [&](const HoldView& hold) { return hold.fence != *fence; });
  if (fence || key.holders == 1) {
    if (key.holds.empty()) throw Failure(kExitConflict, "nobody holds it under that fence");
    const Fence held = key.holds.front().fence;
    return {.kind = key.kind, .holds = std::move(key.holds), .fence = held};
  }
  throw Failure(kExitUsage,
                std::to_string(key.holders) + " hold " + in_quotes(key.key) +
                    ": name one by --fence, as lockctl describe tells it, or say --all");
}

void show(const std::string& key, const Target& target) {
  for (const HoldView& hold : target.holds) {
    const KeyView one{.kind = target.kind, .key = key, .holders = 1, .holds = {hold}};
    std::fprintf(stderr, "lockctl: %s is %s, fence %s\n", in_quotes(key).c_str(),
                 holders_text(one).c_str(), fence_text(hold.fence).c_str());
  }
}

// Asks the person at the terminal. Throws Failure when the answer is no.
void require_consent() {
  std::fputs("release it all the same? [y/N] ", stderr);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return;
  throw Failure(kExitConflict, "nothing was done");
}

}  // namespace

int release_by_force(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string key = key_of(arguments);
  const std::string reason = reason_of(invocation, "lockctl release --force");
  if (arguments.operands().size() > 1) {
    throw Failure(kExitUsage, "--force takes no HANDLE: --fence names one hold of several");
  }
  if (arguments.has("fence") && arguments.has("all")) {
    throw Failure(kExitUsage, "--fence and --all: give one of them");
  }
  if (!arguments.has("yes") && ::isatty(STDIN_FILENO) != 1) {
    throw Failure(kExitUsage, "--force asks before it ends a hold: without a terminal say --yes");
  }
  const auto api = api_of(invocation, key);
  const Target target = target_of(invocation, held_key(invocation, *api, key));
  show(key, target);
  if (!arguments.has("yes")) require_consent();
  Parameters release{{"key", key}, {"kind", kind_text(target.kind)}, {"reason", reason}};
  if (target.fence) release.push_back({"token", *target.fence});
  if (!target.fence) release.push_back({"all", true});
  return finish(invocation, api->post("/v1/admin/release", release));
}

int execute_disconnect(const Invocation& invocation) {
  const std::uint64_t id = client_id_of(invocation.arguments.operands().front());
  const std::string reason = reason_of(invocation, "lockctl disconnect");
  const ApiReply reply =
      only_api_of(invocation)
          ->post("/v1/admin/disconnect", {{"client_id", id}, {"reason", reason}});
  if (reply.status == 404) throw Failure(kExitConflict, refusal_of(reply).line);
  return finish(invocation, reply);
}

int execute_resize(const Invocation& invocation) {
  const std::string key = key_of(invocation.arguments);
  const auto limit = parse_whole(invocation.arguments.operands()[1], 1, kLimitMax);
  if (!limit) {
    throw Failure(kExitUsage, "LIMIT is " + in_quotes(invocation.arguments.operands()[1]) +
                                  ": it takes a whole number from 1 to 2147483647");
  }
  Parameters resize{{"key", key}, {"limit", *limit}};
  if (const auto reason = invocation.arguments.text("reason")) {
    resize.push_back({"reason", std::string(*reason)});
  }
  return finish(invocation, api_of(invocation, key)->post("/v1/admin/resize", resize));
}

}  // namespace lockd::cli
