// What commands take: their options, operands and examples, and the longer texts about them.
//
// For command_table.cc alone, which puts them together.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "lockctl/commands/command_table.h"
#include "lockctl/option_rows.h"

namespace lockd::cli::rows {

inline constexpr std::uint64_t kSecondsMax = 9'223'372'036;

// --- options that several commands have ---

inline constexpr auto kStandard = std::to_array<Option>({
    toggle("help", 'h', "Print what the command does and takes, and exit."),
    toggle("version", 'V', "Print the version, and exit."),
});

inline constexpr auto kConnection = std::to_array<Option>({
    repeated(setting("server", 's', Shape::text, "HOST[:PORT]", "DFLOCKD_SERVERS",
                     "Where the server is; 127.0.0.1:6388 unless it is said. Several, given one by "
                     "one or with commas between, share the keys among them as all clients do, by "
                     "the CRC-32 of the key: the order matters. DFLOCKD_HOST and DFLOCKD_PORT are "
                     "read too, where DFLOCKD_SERVERS is not set.",
                     "servers")),
    repeated(setting("cluster", 0, Shape::text, "HOST[:PORT]", "DFLOCKD_CLUSTER",
                     "Instead of --server: the servers of one cluster, one by one or with commas "
                     "between, in any order. The one that leads is looked for among them, for "
                     "--connect-timeout at most, and again when another takes over; nobody else is "
                     "asked, whomever they name.")),
    repeated(setting("http", 0, Shape::text, "HOST:PORT", "DFLOCKD_HTTP_ADDR",
                     "Where the server's HTTP port is, for the commands that need it. "
                     "https://HOST:PORT and http://HOST:PORT say whether it speaks TLS; otherwise "
                     "it does when --tls is on. Of a cluster, those of all servers, one by one or "
                     "with commas between: the one that leads is asked.",
                     "http-addr")),
    setting("token-file", 0, Shape::file, "FILE", "DFLOCKD_AUTH_TOKEN_FILE",
            "A file with the auth token. Keep it readable by its owner only.", "auth-token-file"),
    secret(setting("token", 0, Shape::text, "TOKEN", "DFLOCKD_AUTH_TOKEN",
                   "The auth token itself. Every user of the machine can read it on the command "
                   "line, for a moment at least, and shells keep it in their history: a file is "
                   "better.",
                   "auth-token")),
    setting("tls", 0, Shape::toggle, "", "DFLOCKD_TLS",
            "Talk TLS, and verify the server's certificate. The other options of TLS imply it."),
    setting("tls-ca", 0, Shape::file, "FILE", "DFLOCKD_TLS_CA",
            "Believe the authorities in this file, in PEM, rather than the system's."),
    setting("tls-cert", 0, Shape::file, "FILE", "DFLOCKD_TLS_CLIENT_CERT",
            "The certificate to show, in PEM, for servers that ask for one."),
    setting("tls-key", 0, Shape::file, "FILE", "DFLOCKD_TLS_CLIENT_KEY",
            "The private key of --tls-cert, in PEM."),
    setting("tls-server-name", 0, Shape::text, "NAME", "DFLOCKD_TLS_SERVER_NAME",
            "The name that the server's certificate must have, when it is not the host's."),
    setting("tls-insecure", 0, Shape::toggle, "", "DFLOCKD_TLS_INSECURE",
            "Believe anybody who answers. Hides the traffic from those who only listen, and "
            "from nobody else."),
    setting("connect-timeout", 0, Shape::seconds, "SECONDS", "DFLOCKD_CONNECT_TIMEOUT_S",
            "How long to try to connect, and to wait for an answer that should come at once; 10 "
            "unless it is said."),
    text("config", 0, "FILE", "Read this file instead of lockd.toml.", Shape::file),
});

inline constexpr Option kJson = toggle("json", 'j', "Print JSON, for programs.");
inline constexpr Option kJsonLines =
    toggle("json", 'j', "Print JSON, one object a line, for programs to read as they come.");
inline constexpr Option kNonblock =
    toggle("nonblock", 'n', "Do not wait: if it is held, exit with the conflict code.", "nb");
inline constexpr Option kWait =
    text("wait", 'w', "SECONDS",
         "Wait at most so long, then exit with the conflict code. Fractions are fine; 0 is -n. "
         "Without it the wait has no end.",
         Shape::seconds, "timeout");
inline constexpr Option kConflictCode =
    whole("conflict-exit-code", 'E', "CODE", 0, 255,
          "What to exit with when it cannot be had; 1 otherwise.");
inline constexpr Option kSemaphore =
    whole("semaphore", 0, "N", 1, 2'147'483'647,
          "Take one of N slots of a semaphore, rather than a lock. Everybody must say the same N.");
inline constexpr Option kIsSemaphore = toggle("semaphore", 0, "The key is a semaphore's.");
inline constexpr Option kHolder =
    text("holder", 0, "NAME",
         "Who holds it. Who asks again under the same name gets the same grant back. By default "
         "USER@HOST:PID, with the process that lockctl was started by: a shell that asks twice is "
         "one holder.");
inline constexpr Option kLease =
    text("ttl", 0, "SECONDS", "The lease; the server's default otherwise.", Shape::seconds);

inline constexpr OptionGroup kServer{"Connection", kConnection};

inline constexpr auto kJsonOnly = std::to_array<Option>({kJson});
inline constexpr auto kJsonLinesOnly = std::to_array<Option>({kJsonLines});

// --- run ---

inline constexpr auto kRunOptions = std::to_array<Option>({
    kNonblock,
    kWait,
    kConflictCode,
    kSemaphore,
    whole("ttl", 0, "SECONDS", 1, kSecondsMax,
          "The lease, in whole seconds; the server's default otherwise. It is renewed for as long "
          "as the command runs. A shorter one is noticed sooner when this machine dies; a longer "
          "one outlives a longer pause."),
    text("grace", 0, "SECONDS",
         "How long a command whose lock is lost may take to end after SIGTERM, before SIGKILL; 10 "
         "unless it is said.",
         Shape::seconds),
    text("command", 'c', "COMMAND",
         "Have the shell ($SHELL, or /bin/sh) run this, instead of a command and its arguments. "
         "May stand behind KEY, as with flock."),
    toggle("keep-auth", 0,
           "Leave DFLOCKD_AUTH_TOKEN and DFLOCKD_AUTH_TOKEN_FILE in the command's environment."),
    toggle("verbose", 'v', "Say on standard error what is waited for, and for how long it was."),
});

inline constexpr auto kRunOperands = std::to_array<Operand>({
    {.name = "KEY", .help = "The lock."},
    {.name = "COMMAND",
     .count = Operand::Count::command,
     .help = "What to run, and its arguments."},
});

inline constexpr auto kRunExamples = std::to_array<Example>({
    {"lockctl run nightly-report -- make report", "One at a time; others wait their turn."},
    {"lockctl run -n -E 75 nightly-report make report", "Not now if somebody is at it."},
    {"lockctl run --semaphore 4 encoders -- ffmpeg -i in.mov out.mp4", "Four at a time."},
    {"lockctl run -w 10 db -c 'pg_dump app | gzip > app.gz'", "With a shell's help."},
});

inline constexpr std::string_view kRunText =
    "Takes the lock, runs the command, and releases the lock when the command ends. The queue is "
    "first in, first out. The letters and habits are those of flock(1); of its options -s, -x, "
    "-o and -u have no meaning here, and -s is the server.\n"
    "\n"
    "The command keeps standard input, the terminal and what descriptors lockctl was started with. "
    "It sees LOCKD_KEY, LOCKD_TOKEN (the token of the line protocol), LOCKD_FENCE (the fencing "
    "token, a number: hand it to whatever the lock protects, and have that refuse a smaller one "
    "than it has seen) and LOCKD_EXPIRES_AT (Unix time in whole seconds: until then the first "
    "lease "
    "runs for certain; it is renewed in the background).\n"
    "\n"
    "Signals that lockctl gets are passed on to the command, except those that the terminal sends "
    "to both. Stopping the command from the terminal (^Z) stops lockctl with it, and nobody renews "
    "the lease meanwhile: when it has run out by the time the two go on, the command is ended. "
    "While lockctl waits in the queue, SIGINT and its like end the wait at once.\n"
    "\n"
    "When the lock is lost while the command runs, because the server is gone for longer than the "
    "lease, or says that the lock is no longer ours, then the command and all that it started get "
    "SIGTERM and, after --grace, SIGKILL, and the status is 79. If lockctl itself is killed, the "
    "command gets SIGKILL, and the server passes the lock on.";

// --- reservations ---

inline constexpr auto kAcquireOptions = std::to_array<Option>({
    kNonblock,
    kWait,
    kConflictCode,
    kSemaphore,
    kLease,
    kHolder,
    kJson,
});
inline constexpr auto kRenewOptions = std::to_array<Option>({kIsSemaphore, kLease, kHolder, kJson});
inline constexpr auto kReleaseOptions = std::to_array<Option>({kIsSemaphore, kHolder, kJson});

inline constexpr auto kKeyOperand = std::to_array<Operand>({{.name = "KEY", .help = "The key."}});
inline constexpr auto kTokenOperands = std::to_array<Operand>({
    {.name = "KEY", .help = "The key."},
    {.name = "TOKEN", .help = "What acquire printed, or a token of the line protocol."},
});

inline constexpr auto kAcquireExamples = std::to_array<Example>({
    {"token=$(lockctl acquire deploy --ttl 600) || exit", "Hold it over several commands."},
    {"lockctl release deploy \"$token\"", "And give it back."},
});

inline constexpr std::string_view kAcquireText =
    "Reserves a key for a holder, and prints the fence, which the HTTP API calls token: a number "
    "that rises with every grant of the key, and by which it is renewed and released. The "
    "reservation ends with its lease: no connection keeps it, and nobody renews it but you. To "
    "hold a lock while a command runs, use lockctl run.\n"
    "\n"
    "Needs the server's HTTP port (--http): a lock that is taken over the line port ends with the "
    "connection.";
inline constexpr std::string_view kByToken =
    "A token of 32 hex digits, as LOCKD_TOKEN is one, names a grant of the line port and goes "
    "there; a number is one that lockctl acquire printed, and goes to the HTTP port (--http) with "
    "the name of its holder.";

// --- looking ---

inline constexpr auto kListOptions = std::to_array<Option>({
    kJsonLines,
    toggle("waiters", 'w', "Those with the longest queues first; over HTTP at most 1,000."),
    toggle("idle", 0, "Also the keys that nobody holds and the server has not forgotten yet."),
    whole("limit", 'l', "N", 1, 1'000'000'000, "At most so many."),
});
inline constexpr auto kPrefixOperand = std::to_array<Operand>({
    {.name = "PREFIX", .count = Operand::Count::optional, .help = "Only keys that begin so."},
});
inline constexpr auto kTopOptions = std::to_array<Option>({
    text("interval", 'i', "SECONDS", "How often to look; 1 unless it is said.", Shape::seconds),
});

// --- signals ---

inline constexpr auto kListenOptions = std::to_array<Option>({
    text("group", 'g', "NAME", "Share the signals with all others of this group: one gets each."),
    whole("count", 'c', "N", 1, kSecondsMax, "Exit after so many signals."),
    text("wait", 'w', "SECONDS", "Exit with 1 when none comes for so long.", Shape::seconds,
         "timeout"),
    kJsonLines,
});
inline constexpr auto kListenOperands = std::to_array<Operand>({
    {.name = "PATTERN",
     .count = Operand::Count::many,
     .help = "Channels: tokens with dots between, where * is any token and > the rest."},
});
inline constexpr auto kSignalOperands = std::to_array<Operand>({
    {.name = "CHANNEL", .help = "Where to: tokens with dots between."},
    {.name = "PAYLOAD", .help = "What to say: one line, not blank."},
});

// --- bench ---

inline constexpr auto kBenchOptions = std::to_array<Option>({
    whole("workers", 0, "N", 1, 100'000, "How many work at once; 10 unless it is said."),
    whole("rounds", 0, "N", 1, 1'000'000'000,
          "How often each acquires and releases; 50 unless it is said."),
    text("key", 0, "KEY", "The beginning of every worker's key; bench unless it is said."),
    toggle("shared-key", 0, "All workers contend for KEY itself."),
    whole("timeout", 0, "SECONDS", 0, kSecondsMax, "How long an acquire waits; 30 unless said."),
    whole("lease", 0, "SECONDS", 1, kSecondsMax, "The lease; 10 unless it is said."),
    whole("connections", 0, "N", 0, 1000,
          "How many connections a worker goes round on; 0 and 1 are one."),
    whole("warmup", 0, "N", 0, 1'000'000'000,
          "How many rounds before those that count; 10 unless it is said."),
    whole("pipeline", 0, "N", 1, 10'000,
          "How many rounds a worker has under way at once, each on a key of its own; 1 unless it "
          "is said. Not with --shared-key: a queue that waits for itself never moves."),
    toggle("http", 0,
           "Use the HTTP API. The servers are then HTTP addresses; without any, DFLOCKD_HTTP_ADDR "
           "or that of the file is used."),
    kJson,
});
// As kConnection, without --http, which means something else here.
inline constexpr auto kBenchConnection = [] {
  std::array<Option, kConnection.size() - 1> options{};
  std::copy_if(kConnection.begin(), kConnection.end(), options.begin(),
               [](const Option& option) { return option.name != "http"; });
  return options;
}();
inline constexpr auto kBenchExamples = std::to_array<Example>({
    {"lockctl bench --workers 100 --rounds 1000", "A hundred at once, each on its own key."},
    {"lockctl bench --shared-key --workers 20", "Twenty in one queue."},
    {"lockctl bench --servers a:6388,b:6388 --pipeline 16", "Two servers, kept busy."},
    {"lockctl bench --http --servers http://127.0.0.1:8080 --json", "The HTTP API, as a record."},
});

// --- files, and lockctl about itself ---

inline constexpr auto kDirectoryOperand = std::to_array<Operand>({
    {.name = "DIR", .help = "What the server was given as --wal.", .shape = Shape::directory},
});
inline constexpr auto kShellOperand = std::to_array<Operand>({
    {.name = "SHELL", .help = "Which shell.", .choices = "bash zsh fish"},
});
inline constexpr auto kCommandOperand = std::to_array<Operand>({
    {.name = "COMMAND",
     .count = Operand::Count::any,
     .help = "Which command's page; lockctl's own when none is named."},
});
inline constexpr auto kManOptions = std::to_array<Option>({
    text("directory", 'd', "DIR", "Write all pages into this directory instead.", Shape::directory),
});

}  // namespace lockd::cli::rows
