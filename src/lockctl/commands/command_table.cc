#include "lockctl/commands/command_table.h"

#include <algorithm>

#include "lockctl/commands/command_rows.h"
#include "lockctl/commands/commands.h"

namespace lockd::cli {
namespace {

using namespace rows;

constexpr auto kCommands = std::to_array<Command>({
    {.name = "run",
     .summary = "Run a command while holding a lock",
     .description = kRunText,
     .operands = kRunOperands,
     .groups = {OptionGroup{"Options", kRunOptions}, kServer},
     .examples = kRunExamples,
     .exits = kRunExits,
     .execute = execute_run},
    {.name = "acquire",
     .summary = "Reserve a key, and print its token",
     .description = kAcquireText,
     .operands = kKeyOperand,
     .groups = {OptionGroup{"Options", kAcquireOptions}, kServer},
     .examples = kAcquireExamples,
     .execute = execute_acquire},
    {.name = "renew",
     .summary = "Renew the lease of a key",
     .description = kByToken,
     .operands = kTokenOperands,
     .groups = {OptionGroup{"Options", kRenewOptions}, kServer},
     .execute = execute_renew},
    {.name = "release",
     .summary = "Give a key back",
     .description = kByToken,
     .operands = kTokenOperands,
     .groups = {OptionGroup{"Options", kReleaseOptions}, kServer},
     .execute = execute_release},
    {.name = "fence",
     .summary = "Print the token of the last grant of a key",
     .description = "Prints the largest token that has been granted for the key, or may have been. "
                    "Who writes under a smaller one comes too late. Needs the HTTP port (--http).",
     .operands = kKeyOperand,
     .groups = {OptionGroup{"Options", kJsonOnly}, kServer},
     .execute = execute_fence},
    {.name = "list",
     .summary = "List keys, who holds them, and how many wait",
     .description = "Over the HTTP port (--http) with holders, fences and times; without it from "
                    "the statistics of the line port, which know less.",
     .operands = kPrefixOperand,
     .groups = {OptionGroup{"Options", kListOptions}, kServer},
     .execute = execute_list},
    {.name = "describe",
     .summary = "Show one key: its holders, and its queue",
     .description =
         "Shows every holder with its lease and everybody in the queue with the time waited. "
         "Needs the HTTP port (--http).",
     .operands = kKeyOperand,
     .groups = {OptionGroup{"Options", kJsonOnly}, kServer},
     .execute = execute_describe},
    {.name = "watch",
     .summary = "Show what happens to keys, as it happens",
     .description = "Prints a line for every grant, release, expiry and wait. Needs the HTTP port "
                    "(--http).",
     .operands = kPrefixOperand,
     .groups = {OptionGroup{"Options", kJsonLinesOnly}, kServer},
     .execute = execute_watch},
    {.name = "stats",
     .summary = "Print the statistics of a server",
     .description = "Over the line port. With several servers, those of each; with --json an "
                    "object a line, in the order of the servers. Of a cluster, those of the server "
                    "that leads.",
     .groups = {OptionGroup{"Options", kJsonOnly}, kServer},
     .execute = execute_stats},
    {.name = "ping",
     .summary = "See whether servers answer, and how fast",
     .description = "Asks every server, and succeeds when all have answered. Of a cluster, all but "
                    "one follow, and say whom.",
     .groups = {OptionGroup{"Options", kJsonLinesOnly}, kServer},
     .execute = execute_ping},
    {.name = "listen",
     .summary = "Print signals as they come",
     .description = "Prints the channel and the payload of each signal. With several servers it "
                    "listens to all of them, of a cluster to the one that leads: when another "
                    "takes over it ends.",
     .operands = kListenOperands,
     .groups = {OptionGroup{"Options", kListenOptions}, kServer},
     .execute = execute_listen},
    {.name = "signal",
     .summary = "Send a signal",
     .description = "Sends it to everybody who listens, and prints how many it reached. With "
                    "several servers, over the one that the channel's name belongs to.",
     .operands = kSignalOperands,
     .groups = {OptionGroup{"Options", kJsonOnly}, kServer},
     .execute = execute_signal},
    {.name = "top",
     .summary = "Watch hot keys, queues and rates, full screen",
     .description =
         "Keys with the longest queues first. Over the HTTP port (--http) with rates and "
         "times; without it from the statistics of the line port. q ends it.",
     .groups = {OptionGroup{"Options", kTopOptions}, kServer},
     .execute = execute_top},
    {.name = "bench",
     .summary = "Put load on a server, and measure it",
     .description = "Every worker acquires and releases, round after round, and every reply is "
                    "checked. Prints how many rounds were done a second, and how long they took. "
                    "Works with every server that is compatible with dflockd.",
     .groups = {OptionGroup{"Options", kBenchOptions}, OptionGroup{"Connection", kBenchConnection}},
     .examples = kBenchExamples,
     .execute = execute_bench},
    {.name = "wal inspect",
     .summary = "Print what is in a journal",
     .description = "Shows every segment, frame and event, damaged or not, as far as it can be "
                    "read. Changes nothing, and needs no lock: of a journal in use it shows what "
                    "was there a moment ago.",
     .operands = kDirectoryOperand,
     .groups = {OptionGroup{"Options", kJsonLinesOnly}},
     .execute = execute_wal_inspect},
    {.name = "wal verify",
     .summary = "Say whether a server could start from a journal",
     .description = "Reads all of it, and exits with 65 when it is damaged. A torn end, which a "
                    "crash leaves and a start cuts off, is not damage.",
     .operands = kDirectoryOperand,
     .groups = {OptionGroup{"Options", kJsonOnly}},
     .execute = execute_wal_verify},
    {.name = "completion",
     .summary = "Print the completions for a shell",
     .description = "bash: source <(lockctl completion bash). zsh: put it into a file _lockctl of "
                    "$fpath. fish: lockctl completion fish | source.",
     .operands = kShellOperand,
     .execute = execute_completion},
    {.name = "man",
     .summary = "Print a manual page",
     .description = "Prints the page as roff: lockctl man run | man -l -",
     .operands = kCommandOperand,
     .groups = {OptionGroup{"Options", kManOptions}},
     .execute = execute_man},
});

template <typename Match>
const Option* find_if(const Command& command, Match match) {
  for (const OptionGroup& group : command.groups) {
    const auto found = std::find_if(group.options.begin(), group.options.end(), match);
    if (found != group.options.end()) return &*found;
  }
  // --version is lockctl's own.
  return match(kStandard.front()) ? &kStandard.front() : nullptr;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

std::span<const Option> connection_options() { return kConnection; }
std::span<const Option> standard_options() { return kStandard; }

std::string_view program_version() { return LOCKD_VERSION; }

std::string_view program_summary() { return "locks, for people and scripts"; }

std::string_view program_description() {
  return "Talks to dflockd, lockd-server and every server that is compatible with them: takes "
         "locks for commands, looks at what is held, sends signals, measures.\n"
         "\n"
         "Settings, which are the options of the connection, come from the command line, from "
         "variables of the environment, and from the file lockd.toml in $XDG_CONFIG_HOME, or "
         "~/.config. The command line wins over the environment, and the environment over the "
         "file; with the server itself the environment comes first, here it is the person who "
         "types. In the file they have the names of the options: server = [\"a:6388\", "
         "\"b:6388\"].\n"
         "\n"
         "Standard output has what was asked for, standard error all else. Colours appear on a "
         "terminal only, and never when NO_COLOR is set.";
}

const Option* find_option(const Command& command, std::string_view name) {
  return find_if(command, [&](const Option& option) {
    return option.name == name || (!option.alias.empty() && option.alias == name);
  });
}

const Option* find_option(const Command& command, char letter) {
  return find_if(
      command, [&](const Option& option) { return option.letter != 0 && option.letter == letter; });
}

}  // namespace lockd::cli
