#include "lockctl/commands/take_lock.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "lockctl/api/json.h"
#include "lockctl/api/line_api.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"
#include "lockd/client/client.h"

namespace lockd::cli {
namespace {

using client::BootClock;
using client::HeldLock;

// Tells people, once, that the wait goes on although the server does not answer.
std::function<void(const client::Status&)> tell_once() {
  return [told = false](const client::Status& status) mutable {
    if (!std::exchange(told, true)) say(client::describe(status) + "; asking again");
  };
}

// The line port names several permits behind a lease, so there has to be one. It is renewed.
client::Lease lease_of(const Arguments& arguments, const Share& share) {
  constexpr std::chrono::seconds kLeaseOfSeveral{30};
  const client::Lease named = whole_seconds(arguments, "ttl");
  return named || share.permits == 1 ? named : kLeaseOfSeveral;
}

client::Result<HeldLock> ask_for_lock(client::Client& client, const Arguments& arguments,
                                      Duration wait, const EventFd& news,
                                      const std::stop_token& stop) {
  const Share share = share_of(arguments);
  const std::vector<std::string> keys =
      arguments.has("all") ? keys_of(arguments) : std::vector{arguments.operands().front()};
  const std::vector<KeyItem> items = items_of(keys, share);
  const auto notify = [&news](const client::Status&) { news.set(); };
  return client.acquire(
      {.keys = items,
       .wait = wait,
       .lease = keys.size() == 1 ? lease_of(arguments, share) : whole_seconds(arguments, "ttl"),
       .on_lost = notify,
       .on_suspect = notify,
       .on_interrupted = tell_once()},
      stop);
}

client::ClientOptions options_of(const Invocation& invocation) {
  client::ClientOptions options = invocation.settings.client();
  options.connect.name = invocation.arguments.text("name");
  options.connect.note = invocation.arguments.text("note");
  return options;
}

// If lockctl was stopped for so long that its grant came and expired, it queues again.
client::Result<HeldLock> wait_in_queue(client::Client& client, const Arguments& arguments,
                                       const EventFd& news, std::stop_token stop) {
  const Duration wait = wait_of(arguments);
  const auto start = BootClock::now();
  for (Duration left = wait;; left = wait - (BootClock::now() - start)) {
    auto lock = ask_for_lock(client, arguments, whole_if_endless(left), news, stop);
    if (lock.outcome != client::Outcome::lease_expired || left <= Duration::zero()) return lock;
  }
}

// --- who is waited for ---

Kind kind_of(const Arguments& arguments) {
  return arguments.has("semaphore") ? Kind::semaphore : Kind::lock;
}

// The key as the server tells of it: by its statistics, which know less, where it lacks the API.
// Throws Failure.
std::optional<KeyView> look_at_key(const Invocation& invocation, const client::Address& server,
                                   const std::stop_token& stop) {
  const std::string& key = invocation.arguments.operands().front();
  std::vector<KeyView> keys;
  try {
    const auto api = api_of(invocation, key);
    const std::stop_callback interrupt(stop, [&] { api->interrupt(); });
    const ApiReply reply = ask_about_key(*api, {{"key", key}});
    require(reply);
    const auto page = parse_json(reply.body, "the server");
    for (const auto& one : array_of(page, "locks")) keys.push_back(key_view(one));
  } catch (const NoApi&) {
    const auto stats = parse_json(fetch_stats(invocation.settings, server, stop), "the server");
    keys = keys_of_stats(stats);
  }
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const KeyView& one) {
    return one.key == key && one.kind == kind_of(invocation.arguments) && one.holders > 0;
  });
  return found == keys.end() ? std::nullopt : std::optional(std::move(*found));
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

}  // namespace

bool is_lost(const HeldLock& lock) {
  const auto loss = lock.loss();
  return loss && loss->outcome != client::Outcome::suspect;
}

std::string name_of(const HeldLock& lock) { return "the lock on " + all_in_quotes(lock.keys()); }

void say(const std::string& line) { std::fprintf(stderr, "lockctl: %s\n", line.c_str()); }

TakenLock take_lock(const Invocation& invocation, const SignalSource& signals, const EventFd& news,
                    int pipe) {
  const Arguments& arguments = invocation.arguments;
  const std::string keys = all_in_quotes(arguments.operands());
  client::Client client(options_of(invocation));
  const client::Address& server = client.server_of(arguments.operands().front());
  const bool verbose = arguments.has("verbose");
  const bool is_set = arguments.has("all");
  if (verbose) say("asking " + server.to_string() + " for " + keys);
  const auto asked_at = BootClock::now();
  SignalStop stopper(signals, pipe);
  std::optional<WaitNews> wait_news;
  if (verbose && !is_set) wait_news.emplace(invocation, server);
  auto lock = wait_in_queue(client, arguments, news, stopper.token());
  wait_news.reset();
  const std::string waited = human(BootClock::now() - asked_at);
  if (const int signal = stopper.finish(); signal != 0) return {.status = kExitSignal + signal};
  if (lock.outcome == client::Outcome::timeout) {
    if (verbose) {
      say("gave up on " + keys + " after " + waited + ", " +
          (is_set ? client::describe(lock) : who_holds(invocation, server)));
    }
    const auto code = arguments.whole("conflict-exit-code");
    return {.status = static_cast<int>(code.value_or(kExitConflict))};
  }
  require(lock);
  if (verbose) {
    say("got " + keys + " after " + waited + ", fence " + std::to_string(lock->fence()));
  }
  return {.lock = std::move(*lock)};
}

}  // namespace lockd::cli
