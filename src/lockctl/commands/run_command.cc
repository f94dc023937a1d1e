// lockctl run: a command that runs while a lock is held.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/http_cluster.h"
#include "lockctl/http/json.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"
#include "lockctl/run/child_process.h"
#include "lockctl/run/signals.h"
#include "lockctl/run/supervision.h"
#include "lockd/client/client.h"

namespace lockd::cli {
namespace {

using client::BootClock;
using client::HeldLock;

constexpr Duration kGrace = std::chrono::seconds(10);

void say(const std::string& line) { std::fprintf(stderr, "lockctl: %s\n", line.c_str()); }

// Unix time in whole seconds, rounded down, so that nobody counts on more than there is.
std::int64_t expiry_of(const HeldLock& lock) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto wall = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  return std::chrono::floor<std::chrono::seconds>(wall + (lock.expires_at() - BootClock::now()))
      .count();
}

// What the command sees of the lock; and what it does not see of us.
std::vector<std::string> environment_of(const HeldLock& lock, const Arguments& arguments) {
  std::vector<std::string> left_out;
  if (!arguments.has("keep-auth")) left_out = {"LOCKD_AUTH_TOKEN", "LOCKD_AUTH_TOKEN_FILE"};
  return environment_with({"LOCKD_KEY=" + lock.key(), "LOCKD_TOKEN=" + lock.token(),
                           "LOCKD_FENCE=" + std::to_string(lock.fence()),
                           "LOCKD_EXPIRES_AT=" + std::to_string(expiry_of(lock))},
                          left_out);
}

std::vector<std::string> words_of(const Arguments& arguments) {
  const auto for_shell = arguments.text("command");
  if (!for_shell) return arguments.command();
  const char* const shell = std::getenv("SHELL");
  const bool known = shell != nullptr && *shell != '\0';
  return {known ? shell : "/bin/sh", "-c", std::string(*for_shell)};
}

client::LockRequest request_of(const Arguments& arguments, Duration wait, const EventFd& lost) {
  client::LockRequest request{.key = arguments.operands().front(), .wait = wait};
  request.lease = whole_seconds(arguments, "ttl");
  if (const auto limit = arguments.whole("semaphore")) {
    request.kind = Kind::semaphore;
    request.limit = static_cast<std::uint32_t>(*limit);
  }
  request.on_lost = [&lost](const client::Status&) { lost.set(); };
  return request;
}

// If lockctl was stopped for so long that its grant came and expired, it queues again.
client::Result<HeldLock> wait_in_queue(client::Client& client, const Arguments& arguments,
                                       const EventFd& lost, std::stop_token stop) {
  const Duration wait = wait_of(arguments);
  const auto start = BootClock::now();
  for (Duration left = wait;; left = wait - (BootClock::now() - start)) {
    auto lock = client.acquire(request_of(arguments, whole_if_endless(left), lost), stop);
    if (lock.outcome != client::Outcome::lease_expired || left <= Duration::zero()) return lock;
  }
}

// --- who is waited for ---

Kind kind_of(const Arguments& arguments) {
  return arguments.has("semaphore") ? Kind::semaphore : Kind::lock;
}

// The key as the server tells of it: over HTTP, which knows more, if there is an address. Throws
// Failure.
std::optional<KeyView> look_at_key(const Invocation& invocation, const client::Address& server,
                                   const std::stop_token& stop) {
  const std::string& key = invocation.arguments.operands().front();
  std::vector<KeyView> keys;
  if (!invocation.settings.http.empty()) {
    const auto http = require_http(invocation);
    const std::stop_callback interrupt(stop, [&] { http->interrupt(); });
    const HttpReply reply = http->get("/v1/locks?key=" + url_encoded(key));
    require(reply);
    const auto page = parse_json(reply.body, "the server");
    for (const auto& one : array_of(page, "locks")) keys.push_back(key_view(one));
  } else {
    const auto stats = parse_json(fetch_stats(invocation.settings, server, stop), "the server");
    keys = keys_of_stats(stats);
  }
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const KeyView& one) {
    return one.key == key && one.kind == kind_of(invocation.arguments) && one.holders > 0;
  });
  return found == keys.end() ? std::nullopt : std::optional(std::move(*found));
}

// "held by 'ana' for 3s, 1 waiting"
std::string holders_text(const KeyView& key) {
  const HoldView none;
  const HoldView& hold = key.holds.empty() ? none : key.holds.front();
  std::string text = "held by " + (hold.holder.empty() ? "somebody else" : in_quotes(hold.holder));
  if (key.holders > 1) text += " and " + std::to_string(key.holders - 1) + " more";
  if (hold.held_for) text += " for " + human(*hold.held_for);
  if (key.waiters > 0) text += ", " + std::to_string(key.waiters) + " waiting";
  return text;
}

// As far as the server tells: what it cannot be asked is no reason to fail.
std::string who_holds(const Invocation& invocation, const client::Address& server,
                      const std::stop_token& stop = {}) {
  try {
    const auto key = look_at_key(invocation, server, stop);
    return key ? holders_text(*key) : "held by nobody any more";
  } catch (const Failure&) {
    return "held by somebody else";
  }
}

// Tells people who is waited for, once there is a wait to tell of; on a thread of its own, since
// the first one waits.
class WaitNews {
 public:
  WaitNews(const Invocation& invocation, client::Address server)
      : thread_([&invocation, server = std::move(server)](const std::stop_token& stop) {
          constexpr auto kWorthTelling = std::chrono::milliseconds(200);
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any pause;
          pause.wait_for(lock, stop, kWorthTelling, [] { return false; });
          if (stop.stop_requested()) return;
          const std::string held = who_holds(invocation, server, stop);
          if (stop.stop_requested()) return;
          say("waiting for " + in_quotes(invocation.arguments.operands().front()) + ", " + held);
        }) {}

 private:
  std::jthread thread_;  // its end stops and joins it
};

// --- the command ---

int run_while_held(const Arguments& arguments, HeldLock& lock, const SignalSource& signals,
                   const EventFd& lost) {
  adopt_orphans();
  const pid_t child = start_child({words_of(arguments), environment_of(lock, arguments)}, signals);
  const LockGuard guard{.is_held = [&lock] { return lock.is_held(); },
                        .lost = lost,
                        .on_loss =
                            [&lock] {
                              const auto loss = lock.loss();
                              say("the lock on " + in_quotes(lock.key()) + " is lost" +
                                  (loss ? ": " + client::describe(*loss) : "") +
                                  "; the command is stopped");
                            }};
  const ChildExit child_exit =
      supervise(child, signals, guard, arguments.seconds("grace").value_or(kGrace));
  if (child_exit.lost) return kExitLost;
  const client::Status released = lock.release();
  if (released.outcome == client::Outcome::lost || released.outcome == client::Outcome::unsure) {
    say("the lock on " + in_quotes(arguments.operands().front()) +
        " was lost before the command ended: " + client::describe(released));
    return kExitLost;
  }
  return exit_status_of(child_exit.status);
}

}  // namespace

int execute_run(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string& key = arguments.operands().front();
  const SignalSource signals;  // before the client has its thread
  const EventFd lost;
  client::Client client(invocation.settings.client());
  const bool verbose = arguments.has("verbose");
  if (verbose) {
    say("asking " + client.server_of(key).to_string() + " for " + in_quotes(key));
  }
  const auto asked_at = BootClock::now();
  SignalStop stopper(signals);
  std::optional<WaitNews> news;
  if (verbose) news.emplace(invocation, client.server_of(key));
  auto lock = wait_in_queue(client, arguments, lost, stopper.token());
  news.reset();
  const auto waited = BootClock::now() - asked_at;
  if (const int signal = stopper.finish(); signal != 0) return kExitSignal + signal;
  if (lock.outcome == client::Outcome::timeout) {
    if (verbose) {
      say("gave up on " + in_quotes(key) + " after " + human(waited) + ", " +
          who_holds(invocation, client.server_of(key)));
    }
    return static_cast<int>(arguments.whole("conflict-exit-code").value_or(kExitConflict));
  }
  require(lock);
  if (verbose) {
    say("got " + in_quotes(key) + " after " + human(waited) + ", fence " +
        std::to_string(lock->fence()));
  }
  return run_while_held(arguments, *lock, signals, lost);
}

}  // namespace lockd::cli
