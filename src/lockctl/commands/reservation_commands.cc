// acquire, renew, release, fence: reservations, which live by their lease alone.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/text.h"
#include "lockctl/api/api.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/commands/take_lock.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockd/client/client.h"

namespace lockd::cli {
namespace {

using client::BootClock;

std::string checked_holder(std::string_view holder) {
  if (is_name(holder)) return std::string(holder);
  throw Failure(kExitUsage, "a holder is 1 to 256 bytes of UTF-8 without control characters");
}

// Of acquire, whose handle is to be one word.
std::string new_holder(const Arguments& arguments) {
  const auto named = arguments.text("holder");
  if (!named) return random_holder();
  if (named->find(' ') == std::string_view::npos) return checked_holder(*named);
  throw Failure(kExitUsage, "--holder: no spaces, so that the handle is one word");
}

std::uint64_t ms_of_option(Duration time, const char* option) {
  if (time > Duration::zero() && time < std::chrono::milliseconds(1)) {
    throw Failure(kExitUsage, std::string(option) + ": at least 0.001");
  }
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count());
}

void add_lease(Parameters& body, const Arguments& arguments) {
  const auto ttl = arguments.seconds("ttl");
  if (!ttl) return;
  if (*ttl == Duration::zero()) throw Failure(kExitUsage, "--ttl: more than 0");
  body.push_back({"ttl_ms", ms_of_option(*ttl, "--ttl")});
}

std::string path_of(bool semaphore, const char* call) {
  return (semaphore ? "/v1/semaphores/" : "/v1/") + std::string(call);
}

// By what a reservation is renewed and released: "FENCE.HOLDER".
struct Handle {
  std::uint64_t fence = 0;
  std::string holder{};

  std::string to_string() const { return std::to_string(fence) + '.' + holder; }
};

// A grant as it was answered, and its handle.
std::string grant_json(const ApiReply& reply, const std::string& handle) {
  auto grant = parse_json(reply.body, "the server");
  if (grant.is_object()) grant.as_object()["handle"] = handle;
  return boost::json::serialize(grant);
}

// Who else has it, for programs.
void print_conflict(const Invocation& invocation, const ApiReply& reply) {
  if (invocation.arguments.has("json")) invocation.output.line(trimmed(reply.body));
}

// Throws what a refusal means.
void require_done(const Invocation& invocation, const ApiReply& reply) {
  if (!reply.is_ok() && refusal_of(reply).code == kExitConflict) print_conflict(invocation, reply);
  require(reply);
}

// --- by the token of the line protocol ---

bool is_line_token(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

client::LineHold line_hold(const Arguments& arguments) {
  return {.key = arguments.operands()[0],
          .token = arguments.operands().back(),
          .kind = arguments.has("semaphore") ? Kind::semaphore : Kind::lock};
}

// Calls over a connection to the server that has the key. What goes by token may be repeated: in a
// cluster it is, when the server stops to lead before it has answered.
template <typename Call>
auto over_line(const Invocation& invocation, Call call) {
  using client::Outcome;
  const Settings& settings = invocation.settings;
  client::Client client(settings.client());
  const auto started = client::BootClock::now();
  for (;;) {
    auto connection = client.connect(invocation.arguments.operands().front());
    require(connection);
    auto answer = call(*connection);
    const bool is_lost = answer.outcome == Outcome::not_leader ||
                         answer.outcome == Outcome::draining ||
                         answer.outcome == Outcome::disconnected;
    const Duration took = client::BootClock::now() - started;
    if (!settings.is_cluster || !is_lost || took >= settings.connect.connect_timeout) return answer;
  }
}

void require_held(const client::Status& status) {
  if (status.outcome == client::Outcome::refused) {
    throw Failure(kExitConflict, "the key is not held under that token");
  }
  require(status);
}

// A token names one hold.
void require_one_key(const Arguments& arguments) {
  if (arguments.operands().size() == 2) return;
  throw Failure(kExitUsage, "a token of the line protocol is that of one key");
}

int renew_line(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  require_one_key(arguments);
  const client::Lease lease = whole_seconds(arguments, "ttl");
  const auto renewal = over_line(invocation, [&](client::Connection& connection) {
    return connection.renew(line_hold(arguments), lease);
  });
  require_held(renewal);
  const auto remaining = static_cast<std::uint64_t>(renewal->remaining.count());
  if (arguments.has("json")) {
    JsonObject json;
    json.add("key", arguments.operands().front());
    json.add("remaining_s", remaining);
    invocation.output.line(json.finish());
  }
  return kExitOk;
}

int release_line(const Invocation& invocation) {
  require_one_key(invocation.arguments);
  require_held(over_line(invocation, [&](client::Connection& connection) {
    return connection.release(line_hold(invocation.arguments));
  }));
  if (invocation.arguments.has("json")) {
    JsonObject json;
    json.add("key", invocation.arguments.operands().front());
    json.add("released", true);
    invocation.output.line(json.finish());
  }
  return kExitOk;
}

// What names the hold: a handle, or a fence and --holder.
Handle handle_of(const Arguments& arguments) {
  const std::string_view word = arguments.operands().back();
  const auto holder = arguments.text("holder");
  const std::size_t dot = word.find('.');
  const auto fence = parse_whole(word.substr(0, dot), 1, kFenceMax);
  if (!fence) {
    throw Failure(kExitUsage, "HANDLE: " + in_quotes(word) +
                                  ": it is what acquire printed, or a token of 32 hex digits");
  }
  if (dot != std::string_view::npos) {
    Handle handle{*fence, checked_holder(word.substr(dot + 1))};
    if (!holder || *holder == handle.holder) return handle;
    throw Failure(kExitUsage, "--holder names another holder than the handle");
  }
  if (holder) return {*fence, checked_holder(*holder)};
  throw Failure(kExitUsage,
                "HANDLE: " + in_quotes(word) +
                    " does not say whose it is: give the handle that acquire printed, or "
                    "--holder NAME");
}

// A handle does not say whether it is a lock's or a semaphore's: what is not held as the one may be
// as the other.
ApiReply post_by_handle(const Invocation& invocation, const char* call, const Parameters& body) {
  const auto api = api_of(invocation, key_of(invocation.arguments));
  const bool semaphore = invocation.arguments.has("semaphore");
  const ApiReply reply = api->post(path_of(semaphore, call), body);
  if (reply.is_ok() || semaphore || refusal_of(reply).code != kExitConflict) return reply;
  const ApiReply other = api->post(path_of(true, call), body);
  return other.is_ok() ? other : reply;
}

Parameters named_hold(Parameter keys, const Handle& handle) {
  return {std::move(keys), {"holder", handle.holder}, {"token", handle.fence}};
}

// --- several keys, by one handle ---

Parameter named_keys(const std::vector<std::string>& keys, Kind kind) {
  return named_keys(keys, Share{.kind = kind});
}

// Which of the keys a refusal says is not held.
std::ptrdiff_t missing_in(const ApiReply& refusal, const std::vector<std::string>& keys) {
  const std::string key = text_of(parse_json(refusal.body, "the server"), "key");
  return std::ranges::find(keys, key) - keys.begin();
}

// All of them, or none.
ApiReply renew_all(const Invocation& invocation, const std::vector<std::string>& keys,
                   const Handle& handle, const Parameters& lease) {
  const auto api = api_of_all(invocation, keys);
  const auto renew = [&](Kind kind) {
    Parameters body = named_hold(named_keys(keys, kind), handle);
    body.insert(body.end(), lease.begin(), lease.end());
    return api->post("/v1/renew", body);
  };
  if (invocation.arguments.has("semaphore")) return renew(Kind::semaphore);
  const ApiReply reply = renew(Kind::lock);
  if (reply.is_ok() || refusal_of(reply).code != kExitConflict) return reply;
  const ApiReply other = renew(Kind::semaphore);
  // Of two refusals the one that names the later key tells more: those before it are held so.
  return other.is_ok() || missing_in(other, keys) > missing_in(reply, keys) ? other : reply;
}

// Releases those that are held as this kind, and returns the others.
std::vector<std::string> release_held(Api& api, const std::vector<std::string>& keys, Kind kind,
                                      const Handle& handle) {
  const ApiReply reply = api.post("/v1/release", named_hold(named_keys(keys, kind), handle));
  require(reply);
  const auto told = parse_json(reply.body, "the server");
  std::vector<std::string> not_held;
  for (const auto& one : array_of(told, "not_held")) {
    not_held.push_back(one.is_string() ? std::string(one.as_string()) : text_of(one, "key"));
  }
  return not_held;
}

std::string released_json(const std::vector<std::string>& keys,
                          const std::vector<std::string>& not_held) {
  JsonArray released;
  JsonArray others;
  for (const std::string& key : keys) {
    const bool is_gone = std::ranges::find(not_held, key) != not_held.end();
    append_json_string((is_gone ? others : released).next(), key);
  }
  JsonObject json;
  json.add_json("released", released.finish());
  json.add_json("not_held", others.finish());
  return json.finish();
}

int release_all(const Invocation& invocation, const std::vector<std::string>& keys) {
  const Arguments& arguments = invocation.arguments;
  const Handle handle = handle_of(arguments);
  const auto api = api_of_all(invocation, keys);
  std::vector<std::string> left = keys;
  if (!arguments.has("semaphore")) left = release_held(*api, left, Kind::lock, handle);
  if (!left.empty()) left = release_held(*api, left, Kind::semaphore, handle);
  if (arguments.has("json")) invocation.output.line(released_json(keys, left));
  if (left.empty()) return kExitOk;
  throw Failure(kExitConflict, "not held under that handle: " + all_in_quotes(left));
}

}  // namespace

namespace {

// One key, which has calls of its own for either kind.
ApiReply post_acquire(const Invocation& invocation, Parameters body, const Parameters& times,
                      Duration wait) {
  const std::string key = key_of(invocation.arguments);
  const Share share = share_of(invocation.arguments);
  body.insert(body.begin(), {"key", key});
  if (share.kind == Kind::semaphore) body.push_back({"limit", std::uint64_t{share.limit}});
  if (share.mode == Mode::shared) body.push_back({"mode", "shared"});
  if (share.permits > 1) body.push_back({"permits", std::uint64_t{share.permits}});
  body.insert(body.end(), times.begin(), times.end());
  return api_of(invocation, key)
      ->post(path_of(share.kind == Kind::semaphore, "acquire"), body, wait);
}

ApiReply post_acquire_all(const Invocation& invocation, Parameters body, const Parameters& times,
                          Duration wait) {
  const std::vector<std::string> keys = keys_of(invocation.arguments);
  body.insert(body.begin(), named_keys(keys, share_of(invocation.arguments)));
  body.insert(body.end(), times.begin(), times.end());
  return api_of_all(invocation, keys)->post("/v1/acquire", body, wait);
}

// One wait. The server may be down, stop, or cut it short: then it is asked again until the wait is
// over, under the same name, which gets its own grant back.
class ReservationWait {
 public:
  ReservationWait(const Invocation& invocation, const std::string& holder)
      : invocation_(invocation), holder_(holder), wait_(wait_of(invocation.arguments)) {
    ms_of_option(wait_, "--wait");
  }

  // The last word. Throws Failure.
  ApiReply run() {
    for (Duration left = whole_if_endless(wait_);; left = rest()) {
      try {
        ApiReply reply = ask(left);
        if (reply.is_ok() || left == Duration::zero()) return reply;
        const Refusal refusal = refusal_of(reply);
        was_stopping_ = refusal.error == "draining";
        // What is left of a wait that was not cut short is the way back.
        const bool was_cut = refusal.error == "wait_timeout" && rest() > kPause;
        if (!was_cut && !was_stopping_ && refusal.error != "not_leader") return reply;
        pause(refusal.line);
      } catch (const Failure& failure) {
        if (failure.code() != kExitUnavailable) throw;
        if (left == Duration::zero() && was_stopping_)
          throw Failure(kExitTemporary, failure.what());
        if (left == Duration::zero()) throw;
        pause(failure.what());
      }
    }
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(200);

  Duration rest() const { return whole_if_endless(wait_ - (BootClock::now() - start_)); }

  ApiReply ask(Duration wait) const {
    const Arguments& arguments = invocation_.arguments;
    Parameters times;
    add_lease(times, arguments);
    const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
    times.push_back({"wait_ms", static_cast<std::uint64_t>(wait_ms)});
    const auto post = arguments.operands().size() == 1 ? post_acquire : post_acquire_all;
    return post(invocation_, {{"holder", holder_}}, times, wait);
  }

  // Says once why it is asked again.
  void pause(const std::string& why) {
    if (!std::exchange(told_, true)) say(why + "; asking again");
    std::this_thread::sleep_for(std::min(kPause, rest()));
  }

  const Invocation& invocation_;
  const std::string& holder_;
  const Duration wait_;
  const BootClock::time_point start_ = BootClock::now();
  bool told_ = false;
  bool was_stopping_ = false;  // when it last answered
};

}  // namespace

int execute_acquire(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string holder = new_holder(arguments);
  const ApiReply reply = ReservationWait(invocation, holder).run();
  if (!reply.is_ok() && refusal_of(reply).is_conflict()) {
    print_conflict(invocation, reply);
    std::fprintf(stderr, "lockctl: %s\n", refusal_of(reply).line.c_str());
    return static_cast<int>(arguments.whole("conflict-exit-code").value_or(kExitConflict));
  }
  require(reply);
  const Handle handle{number_of(parse_json(reply.body, "the server"), "token"), holder};
  invocation.output.line(arguments.has("json") ? grant_json(reply, handle.to_string())
                                               : handle.to_string());
  return kExitOk;
}

int execute_renew(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  if (is_line_token(arguments.operands().back())) return renew_line(invocation);
  const std::vector<std::string> keys = keys_of(arguments, 1);
  const Handle handle = handle_of(arguments);
  Parameters lease;
  add_lease(lease, arguments);
  Parameters body = named_hold({"key", keys.front()}, handle);
  body.insert(body.end(), lease.begin(), lease.end());
  const ApiReply reply = keys.size() == 1 ? post_by_handle(invocation, "renew", body)
                                          : renew_all(invocation, keys, handle, lease);
  require_done(invocation, reply);
  if (arguments.has("json")) invocation.output.line(grant_json(reply, handle.to_string()));
  return kExitOk;
}

int execute_release(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  if (arguments.has("force")) return release_by_force(invocation);
  if (arguments.operands().size() < 2) {
    throw Failure(kExitUsage, "lockctl release needs HANDLE, or --force");
  }
  if (is_line_token(arguments.operands().back())) return release_line(invocation);
  const std::vector<std::string> keys = keys_of(arguments, 1);
  if (keys.size() > 1) return release_all(invocation, keys);
  const ApiReply reply = post_by_handle(invocation, "release",
                                        named_hold({"key", keys.front()}, handle_of(arguments)));
  require_done(invocation, reply);
  if (arguments.has("json")) invocation.output.line(trimmed(reply.body));
  return kExitOk;
}

int execute_fence(const Invocation& invocation) {
  const std::string key = key_of(invocation.arguments);
  const ApiReply reply = api_of(invocation, key)->get("/v1/fence", {{"key", key}});
  require(reply);
  if (invocation.arguments.has("json")) {
    invocation.output.line(trimmed(reply.body));
  } else {
    invocation.output.line(
        std::to_string(number_of(parse_json(reply.body, "the server"), "token")));
  }
  return kExitOk;
}

}  // namespace lockd::cli
