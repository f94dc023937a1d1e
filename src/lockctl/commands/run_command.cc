// lockctl run: a command that runs while a lock, or several keys, are held.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "client/stoppable_wait.h"
#include "lockctl/commands/commands.h"
#include "lockctl/commands/take_lock.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/run/child_process.h"
#include "lockctl/run/signals.h"
#include "lockctl/run/supervision.h"
#include "lockd/client/held_lock.h"

namespace lockd::cli {
namespace {

using client::BootClock;
using client::HeldLock;

constexpr Duration kGrace = std::chrono::seconds(10);

// Unix time in whole seconds, rounded down, so that nobody counts on more than there is.
std::int64_t unix_seconds_of(BootClock::time_point time) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::seconds>(wall + (time - BootClock::now())).count();
}

// What the command sees of what is held.
std::vector<std::string> variables_of(const HeldLock& held, const Arguments& arguments) {
  std::vector<std::string> variables{
      "LOCKD_FENCE=" + std::to_string(held.fence()),
      "LOCKD_EXPIRES_AT=" + std::to_string(unix_seconds_of(held.expires_at()))};
  if (!arguments.has("all")) {
    variables.push_back("LOCKD_KEY=" + held.key());
    variables.push_back("LOCKD_TOKEN=" + held.token());
    return variables;
  }
  std::string keys;
  for (const std::string& key : held.keys()) keys += (keys.empty() ? "" : "\n") + key;
  variables.push_back("LOCKD_KEYS=" + keys);
  return variables;
}

// And what it does not see of us, or of a run around us.
std::vector<std::string> environment_of(const HeldLock& held, const Arguments& arguments) {
  std::vector<std::string> left_out{"LOCKD_KEY", "LOCKD_KEYS", "LOCKD_TOKEN"};
  if (!arguments.has("keep-auth")) {
    left_out.insert(left_out.end(), {"LOCKD_AUTH_TOKEN", "LOCKD_AUTH_TOKEN_FILE"});
  }
  return environment_with(variables_of(held, arguments), left_out);
}

std::vector<std::string> words_of(const Arguments& arguments) {
  const auto for_shell = arguments.text("command");
  if (!for_shell) return arguments.command();
  const char* const shell = std::getenv("SHELL");
  const bool known = shell != nullptr && *shell != '\0';
  return {known ? shell : "/bin/sh", "-c", std::string(*for_shell)};
}

// Until then, unless the lock is lost or a signal comes: which is returned, or 0.
int keep_until(BootClock::time_point until, const HeldLock& held, const SignalSource& signals,
               const EventFd& news) {
  for (;;) {
    while (const auto signal = signals.next()) {
      if (!is_harmless(signal->number)) return signal->number;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now());
    if (left.count() <= 0) return 0;
    pollfd watched[] = {{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = news.descriptor(), .events = POLLIN, .revents = 0}};
    constexpr std::int64_t kSleepMaxMs = 1000;  // poll's clock stands still in a suspended machine
    ::poll(watched, std::size(watched),
           static_cast<int>(std::min<std::int64_t>(left.count(), kSleepMaxMs)));
    news.clear();
    if (is_lost(held)) return 0;
  }
}

int run_while_held(const Arguments& arguments, HeldLock& held, const SignalSource& signals,
                   const EventFd& news) {
  const auto until =
      client::later(BootClock::now(), arguments.seconds("at-least").value_or(Duration::zero()));
  adopt_orphans();
  const pid_t child = start_child({words_of(arguments), environment_of(held, arguments)}, signals);
  const LockGuard guard{.is_held = [&held] { return held.is_held(); },
                        .is_lost = [&held] { return is_lost(held); },
                        .news = news,
                        .on_suspect =
                            [&held](bool is_suspect) {
                              const auto why = held.loss();
                              say(name_of(held) + (is_suspect ? " is suspect" : " is held again") +
                                  (why ? ": " + client::describe(*why) : "") + "; the command is " +
                                  (is_suspect ? "paused" : "continued"));
                            },
                        .on_loss =
                            [&held] {
                              const auto loss = held.loss();
                              say(name_of(held) + " is lost" +
                                  (loss ? ": " + client::describe(*loss) : "") +
                                  "; the command is stopped");
                            }};
  const ChildExit child_exit =
      supervise(child, signals, guard, arguments.seconds("grace").value_or(kGrace));
  if (child_exit.lost) return kExitLost;
  const int signal = keep_until(until, held, signals, news);
  const client::Status released = held.release();
  if (exit_code_of(released.outcome) == kExitLost || is_lost(held)) {
    say(name_of(held) + " was lost before the command ended: " + client::describe(released));
    return kExitLost;
  }
  return signal == 0 ? exit_status_of(child_exit.status) : kExitSignal + signal;
}

}  // namespace

int execute_run(const Invocation& invocation) {
  const SignalSource signals;  // before the client has its thread
  const EventFd news;
  TakenLock taken = take_lock(invocation, signals, news);
  if (!taken.lock) return taken.status;
  return run_while_held(invocation.arguments, *taken.lock, signals, news);
}

}  // namespace lockd::cli
