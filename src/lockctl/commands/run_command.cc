// lockctl run: a command that runs while a lock is held.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
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
  auto lock = wait_in_queue(client, arguments, lost, stopper.token());
  if (const int signal = stopper.finish(); signal != 0) return kExitSignal + signal;
  if (lock.outcome == client::Outcome::timeout) {
    if (verbose) say(in_quotes(key) + " is held by somebody else");
    return static_cast<int>(arguments.whole("conflict-exit-code").value_or(kExitConflict));
  }
  require(lock);
  if (verbose) {
    say("got " + in_quotes(key) + " after " + human(BootClock::now() - asked_at) + ", fence " +
        std::to_string(lock->fence()));
  }
  return run_while_held(arguments, *lock, signals, lost);
}

}  // namespace lockd::cli
