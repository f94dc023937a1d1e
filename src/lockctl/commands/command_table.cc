#include "lockctl/commands/command_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using config::boolean;
using config::Command;
using config::directory;
using config::duration;
using config::Example;
using config::file;
using config::Nanoseconds;
using config::Note;
using config::Operand;
using config::Option;
using config::Section;
using config::text;
using config::whole;

constexpr Nanoseconds kMayBeZero{0};
constexpr Nanoseconds kMoreThanZero{1};
constexpr Nanoseconds kOneSecond{1'000'000'000};

// --- options that several commands have ---

constexpr auto kConnection = in_group(
    "Connection",
    std::to_array<Option>({
        text("server", "HOST[:PORT]",
             {.alias = "servers",
              .letter = 's',
              .variables = {"LOCKD_SERVERS"},
              .repeats = true,
              .default_note = "127.0.0.1:6388"},
             "Where the server is. Several, given one by one or with commas between, share the "
             "keys among them as all clients do, by the CRC-32 of the key: the order matters."),
        text("cluster", "HOST[:PORT]", {.variables = {"LOCKD_CLUSTER"}, .repeats = true},
             "Instead of --server: the servers of one cluster, one by one or with commas between, "
             "in any order. The one that leads is looked for among them, for --connect-timeout at "
             "most, and again when another takes over; nobody else is asked, whomever they name."),
        text(
            "http", "HOST:PORT",
            {.alias = "http-addr", .variables = {"LOCKD_HTTP_ADDR"}, .repeats = true},
            "Where the server's HTTP port is. None is needed: what goes over it goes over the line "
            "port as well, unless the server is one that lacks the command `api`. "
            "https://HOST:PORT and http://HOST:PORT say whether it speaks TLS; otherwise it does "
            "when --tls is on. Of a cluster, those of all servers, one by one or with commas "
            "between: the one that leads is asked. A --server or --cluster that is given in a "
            "stronger place, such as the command line over a variable, wins over it."),
        file("token-file", {.alias = "auth-token-file", .variables = {"LOCKD_AUTH_TOKEN_FILE"}},
             "A file with the auth token, read for every connection. Keep it readable by its owner "
             "only."),
        text("token", "TOKEN",
             {.alias = "auth-token",
              .variables = {"LOCKD_AUTH_TOKEN"},
              .rule = "one line of text, not empty, at most 65536 bytes",
              .parse = config::parse_token,
              .secret = true},
             "The auth token itself. Every user of the machine can read it on the command line, "
             "for a moment at least, and shells keep it in their history: a file is better."),
        boolean("tls", {.variables = {"LOCKD_TLS"}},
                "Talk TLS, and verify the server's certificate. The other options of TLS imply "
                "it."),
        file("tls-ca", {.variables = {"LOCKD_TLS_CA"}},
             "Believe the authorities in this file, in PEM, rather than the system's."),
        file("tls-cert", {.variables = {"LOCKD_TLS_CERT"}},
             "The certificate to show, in PEM, for servers that ask for one."),
        file("tls-key", {.variables = {"LOCKD_TLS_KEY"}}, "The private key of --tls-cert, in PEM."),
        text("tls-server-name", "NAME", {.variables = {"LOCKD_TLS_SERVER_NAME"}},
             "The name that the server's certificate must have, when it is not the host's."),
        boolean("tls-insecure", {.variables = {"LOCKD_TLS_INSECURE"}},
                "Believe anybody who answers. Hides the conversation from those who only listen, "
                "and from nobody else."),
        duration("connect-timeout", kMoreThanZero,
                 {.variables = {"LOCKD_CONNECT_TIMEOUT_S"}, .by_default = "10"},
                 "How long to try to connect, and to wait for an answer that should come at once."),
        file("config", {}, "Read this file instead of lockd.toml."),
    }));

constexpr Option kJson = boolean("json", {.letter = 'j'}, "Print JSON, for programs.");
constexpr Option kJsonLines = boolean(
    "json", {.letter = 'j'}, "Print JSON, one object a line, for programs to read as they come.");
constexpr Option kNonblock = boolean("nonblock", {.alias = "nb", .letter = 'n'},
                                     "Do not wait: if it is held, exit with the conflict code.");
constexpr Option kWait =
    duration("wait", kMayBeZero, {.alias = "timeout", .letter = 'w'},
             "Wait at most so long, then exit with the conflict code. 0 is -n. Without it the wait "
             "has no end.");
constexpr Option kConflictCode =
    whole("conflict-exit-code", 0, 255, {.letter = 'E', .value = "CODE", .default_note = "1"},
          "What to exit with when it cannot be had.");
constexpr Option kSemaphore =
    whole("semaphore", 1, INT32_MAX, {},
          "Take one of N permits of a semaphore, rather than a lock. Everybody must say the same "
          "N.");
constexpr Option kShared =
    boolean("shared", {.letter = 'S'},
            "Hold the lock together with all others who share it. Who wants it alone waits until "
            "they are gone, and who wants to share it waits behind who came before and wants it "
            "alone.");
constexpr Option kPermits =
    whole("permits", 1, INT32_MAX, {.by_default = "1"},
          "With --semaphore: take so many of its permits, all of them or none.");
constexpr Option kIsSemaphore =
    boolean("semaphore", {}, "The key is a semaphore's, and no lock's.");
constexpr Option kNewHolder =
    text("holder", "NAME", {.default_note = "random, as USER@HOST:RANDOM"},
         "Who holds it, without spaces. Who asks again under the same name gets the same grant "
         "back, so let nobody else use yours.");
constexpr Option kHolder = text("holder", "NAME", {},
                                "Who holds it, where HANDLE is the fence alone: for holds that "
                                "were taken with a name.");
constexpr Option kLease =
    duration("ttl", kMayBeZero, {.default_note = "the server's"}, "The lease.");

constexpr auto kJsonOnly = std::to_array<Option>({kJson});
constexpr auto kJsonLinesOnly = std::to_array<Option>({kJsonLines});
constexpr auto kPingOptions = std::to_array<Option>({
    boolean("ready", {},
            "Whether they are ready too, as GET /readyz says: in a cluster, whether they could "
            "lead. Exits with 75 when one is not. Needs no right."),
    kJsonLines,
});

constexpr Option kWholeLease = duration(
    "ttl", kOneSecond, {.default_note = "the server's, or 30 with several permits"},
    "The lease, in whole seconds. It is renewed for as long as the lock is held. A shorter "
    "one is noticed sooner when this machine dies; a longer one outlives a longer pause.");
constexpr Option kVerbose =
    boolean("verbose", {.letter = 'v'},
            "Say on standard error who holds it while it is waited for, and for how long it was.");

constexpr Option kName =
    text("name", "NAME", {.default_note = "USER@HOST:PID"},
         "Who we say we are, to those who look at the server: 1 to 256 bytes of plain text.");
constexpr Option kNote = text("note", "TEXT", {.default_note = "lockctl"},
                              "A note beside the name, such as what the lock is for.");

// What shells ask the server for, quickly, when a key is typed.
constexpr std::string_view kLiveKeys = "list --keys --limit 200 --connect-timeout 500ms";

// --- run ---

constexpr auto kRunOptions = std::to_array<Option>({
    boolean("all", {},
            "Take several keys in one step: all of them or none. They are held by a name, rather "
            "than by a connection: when lockctl is killed, their lease ends them."),
    kNonblock,
    kWait,
    kConflictCode,
    kShared,
    kSemaphore,
    kPermits,
    kWholeLease,
    duration(
        "grace", kMayBeZero, {.by_default = "10"},
        "How long a command whose lock is lost may take to end after SIGTERM, before SIGKILL."),
    duration("at-least", kMayBeZero, {.by_default = "0"},
             "Keep the lock for at least so long, also when the command is done before: a job that "
             "many machines start at the same time, by clocks that differ, then runs once."),
    text("command", "COMMAND", {.letter = 'c'},
         "Have the shell ($SHELL, or /bin/sh) run this, instead of a command and its arguments. "
         "May stand behind KEY, as with flock."),
    boolean("keep-auth", {},
            "Leave LOCKD_AUTH_TOKEN and LOCKD_AUTH_TOKEN_FILE in the command's environment."),
    kName,
    kNote,
    kVerbose,
});

constexpr auto kRunOperands = std::to_array<Operand>({
    {.name = "KEY",
     .help = "The lock. With --all there may be several, with -- behind them.",
     .several_by = "all",
     .listed_by = kLiveKeys},
    {.name = "COMMAND",
     .count = Operand::Count::command,
     .help =
         "What to run, and its arguments. A command that begins with a dash needs -- before it.",
     .instead = "command"},
});

constexpr auto kRunExamples = std::to_array<Example>({
    {"lockctl run nightly-report -- make report", "One at a time; others wait their turn."},
    {"lockctl run -n -E 75 nightly-report make report", "Not now if somebody is at it."},
    {"lockctl run -s locks -n -E 0 --at-least 10m nightly-report make report",
     "From the crontabs of many machines, whose clocks differ: once."},
    {"lockctl run -S prices.csv -- ./report", "With all others who only read."},
    {"lockctl run --semaphore 4 encoders -- ffmpeg -i in.mov out.mp4", "Four at a time."},
    {"lockctl run --semaphore 8 --permits 4 cores -- make -j4", "A job that counts for four."},
    {"lockctl run --all seat-12 seat-13 -- ./book", "Two keys at once, or neither."},
    {"lockctl run -w 10 db -c 'pg_dump app | gzip > app.gz'", "With a shell's help."},
});

constexpr std::string_view kRunText =
    "Takes the lock, runs the command, and releases the lock when the command ends. Who comes "
    "first is served first. The letters and habits are those of flock(1), but that its -s is -S "
    "here, since -s is the server; -x, -o and -u have no meaning.\n"
    "\n"
    "The command keeps standard input, the terminal and what descriptors lockctl was started with. "
    "It sees LOCKD_KEY, LOCKD_TOKEN (the token of the line protocol), LOCKD_FENCE (the number of "
    "this grant: hand it to whatever the lock protects, and have that refuse a smaller one than it "
    "has seen) and LOCKD_EXPIRES_AT (Unix time in whole seconds: until then the first lease runs "
    "for certain; it is renewed in the background). With --all there are LOCKD_KEYS, a key a line, "
    "instead of the first two.\n"
    "\n"
    "Signals that lockctl gets are passed on to the command, except those that the terminal sends "
    "to both. Stopping the command from the terminal (^Z) stops lockctl with it, and nobody renews "
    "the lease meanwhile: when it has run out by the time the two go on, the command is ended. "
    "While lockctl waits in the queue, SIGINT and its like make it leave at once.\n"
    "\n"
    "When the connection to the server ends and no new one renews the lock at once, another client "
    "may hold it: the command and all that it started are stopped (SIGSTOP) until a renewal is "
    "confirmed.\n"
    "\n"
    "When the lock is lost while the command runs, because the server is gone for longer than the "
    "lease, says that the lock is no longer ours, or refuses lockctl after the connection ended, "
    "then the command and all that it started get SIGTERM and, after --grace, SIGKILL, and the "
    "status is 79. If lockctl itself is killed, the "
    "command gets SIGKILL, and the server passes the lock on.";

// --- hold ---

constexpr auto kHoldOptions = std::to_array<Option>({
    kNonblock,
    kWait,
    kConflictCode,
    kShared,
    kSemaphore,
    kPermits,
    kWholeLease,
    whole("kill", 1, INT32_MAX, {.value = "PID"},
          "Send SIGTERM to this process when the lock is lost: $$ is the script."),
    kName,
    kNote,
    kVerbose,
});
constexpr auto kHoldOperands = std::to_array<Operand>({
    {.name = "KEY", .help = "The lock.", .listed_by = kLiveKeys},
});
constexpr auto kHoldExamples = std::to_array<Example>({
    {"exec 9< <(lockctl hold deploy --kill $$)\nread -r fence <&9 || exit",
     "In bash, zsh or ksh: the rest of the script holds it."},
    {"{ read -r fence <&9 && make deploy; } 9< <(lockctl hold deploy)", "A block holds it."},
    {"exec 9<&-", "And let it go."},
});

constexpr std::string_view kHoldText =
    "Takes the lock, prints its fence, and holds it for as long as any process has the other end "
    "of standard output open: what flock(1) does with a descriptor. The lock goes with the last "
    "copy of the descriptor, however the script ends; what a script leaves running keeps it too, "
    "unless that is started with 9<&-.\n"
    "\n"
    "The script reads the fence, which comes when the lock is held; when it cannot be had, there "
    "is "
    "nothing to read. When the lock is lost, because the server is gone for longer than the lease "
    "or says that the lock is no longer ours, standard error says so, the process of --kill gets "
    "SIGTERM, and the descriptor is at its end: \"read -t 0 -u 9\" succeeds in bash, and "
    "\"wait $!\" gives 79. Nothing else stops the script: hand the fence to whatever the lock "
    "protects.\n"
    "\n"
    "On a terminal it holds the lock until ^C.";

// --- reservations ---

constexpr auto kAcquireOptions = std::to_array<Option>({
    kNonblock,
    kWait,
    kConflictCode,
    kShared,
    kSemaphore,
    kPermits,
    kLease,
    kNewHolder,
    kJson,
});
constexpr auto kRenewOptions = std::to_array<Option>({kIsSemaphore, kLease, kHolder, kJson});
constexpr Option kReason =
    text("reason", "TEXT", {},
         "Why, for those who ask later: it is kept in the log and in the history.");
constexpr auto kReleaseOptions = std::to_array<Option>({
    kIsSemaphore,
    kHolder,
    boolean("force", {},
            "End somebody else's hold, which needs the right to: show who holds it, ask, and "
            "release that hold and no later one. Needs --reason."),
    kReason,
    whole("fence", 1, kFenceMax, {.value = "FENCE"},
          "With --force: which one, where several hold it."),
    boolean("all", {}, "With --force: all of them."),
    boolean("yes", {.letter = 'y'}, "With --force: do not ask."),
    kJson,
});
constexpr auto kAdminOptions = std::to_array<Option>({kReason, kJson});

constexpr Operand kKey{.name = "KEY", .help = "The key.", .listed_by = kLiveKeys};
constexpr auto kKeyOperand = std::to_array<Operand>({kKey});
constexpr auto kAcquireOperands = std::to_array<Operand>({
    {.name = "KEY",
     .count = Operand::Count::many,
     .help = "The key; or several, which are taken in one step: all of them or none.",
     .listed_by = kLiveKeys},
});
constexpr Operand kHeldKeys{.name = "KEY",
                            .count = Operand::Count::many,
                            .help = "The key; or several that were taken in one step.",
                            .listed_by = kLiveKeys};
constexpr auto kHandleOperands = std::to_array<Operand>({
    kHeldKeys,
    {.name = "HANDLE", .help = "What acquire printed, or a token of the line protocol."},
});
constexpr auto kReleaseOperands = std::to_array<Operand>({
    kHeldKeys,
    {.name = "HANDLE",
     .count = Operand::Count::optional,
     .help = "What acquire printed, or a token of the line protocol. None with --force."},
});
constexpr auto kClientOperand = std::to_array<Operand>({
    {.name = "CLIENT", .help = "Its id, as lockctl clients lists it: 17, or tcp:17."},
});
constexpr auto kResizeOperands = std::to_array<Operand>({
    kKey,
    {.name = "LIMIT", .help = "How many may hold it at once, from now on."},
});
constexpr auto kReleaseExamples = std::to_array<Example>({
    {"lockctl release deploy \"$handle\"", "Give back what acquire reserved."},
    {"lockctl release --force deploy --reason 'the runner is dead'",
     "See who holds it, and free it after a yes."},
});

constexpr auto kAcquireExamples = std::to_array<Example>({
    {"handle=$(lockctl acquire deploy --ttl 600) || exit", "Hold it over several commands."},
    {"lockctl release deploy \"$handle\"", "And give it back, on whatever machine."},
    {"lockctl acquire seat-12 seat-13 seat-14", "Three keys in one step, under one handle."},
    {"lockctl release seat-12 seat-13 seat-14 \"$handle\"", "And all of them back."},
    {"fence=${handle%%.*}", "What to hand to whatever the lock protects."},
});

constexpr std::string_view kAcquireText =
    "Reserves a key, and prints its handle: one word, FENCE.HOLDER, which is all that lockctl "
    "renew and lockctl release need, from any process on any machine. The fence is a number that "
    "rises with every grant of the key. Two calls are two holders, whoever makes them, unless "
    "--holder gives both one name. The reservation lives by its lease alone; no connection keeps "
    "it, and nobody renews it but you. To hold a lock while a command runs, use lockctl run.\n"
    "\n"
    "Several keys are taken in one step, all of them or none, and have one handle. They are "
    "renewed "
    "and released together, or each as if it had been taken alone.";
constexpr std::string_view kByHandle =
    "HANDLE is what lockctl acquire printed. Whether it is a lock's or a semaphore's is found out. "
    "A token of 32 hex digits, as LOCKD_TOKEN is one, names a grant of lockctl run; a semaphore's "
    "needs --semaphore then. A number is a fence, and needs --holder.\n"
    "\n"
    "Of several keys all are renewed, or none: when one of them is held no more, it is named.";
constexpr std::string_view kReleaseText =
    "HANDLE is what lockctl acquire printed, or else what lockctl renew takes. Of several keys "
    "those "
    "are given back that are held; the others are named, and the status is 1.\n"
    "\n"
    "With --force it ends what somebody else holds: it shows who that is, asks, and names that "
    "hold's fence to the server. Of two who force the same lock the second gets a 1, and whoever "
    "holds it by then keeps it.";

// --- looking ---

constexpr std::string_view kKeyOrders = "key waiters wait held";

constexpr auto kListOptions = std::to_array<Option>({
    kJsonLines,
    boolean("waiters", {.letter = 'w'}, "The same as --sort waiters."),
    text("sort", "ORDER", {.letter = 'o', .choices = kKeyOrders, .by_default = "key"},
         "What comes first: the names, the longest queues, the longest wait, or what is held for "
         "longest. By an order other than the names, at most 1,000 of a server are listed."),
    text("contains", "TEXT", {.letter = 'c'}, "Only keys that have this in them, anywhere."),
    text("holder", "NAME", {},
         "Only what this holder, or the client of this name, has or waits for."),
    text("client-id", "CLIENT", {}, "Only what this client has or waits for: 17, or tcp:17."),
    boolean("idle", {}, "Also the keys that nobody holds and the server has not forgotten yet."),
    whole("limit", 1, 1'000'000'000, {.letter = 'l'}, "At most so many."),
    boolean("keys", {.letter = 'k'}, "Print the keys alone, one a line, as they are."),
});
constexpr auto kPrefixOperand = std::to_array<Operand>({
    {.name = "PREFIX",
     .count = Operand::Count::optional,
     .help = "Only keys that begin so.",
     .listed_by = kLiveKeys},
});
constexpr auto kDescribeOptions = std::to_array<Option>({
    text("client", "CLIENT", {},
         "Instead of a key: everything that this client has or waits for: 17, or tcp:17."),
    kJson,
});
constexpr auto kDescribeOperands = std::to_array<Operand>({
    {.name = "KEY", .count = Operand::Count::optional, .help = "The key.", .listed_by = kLiveKeys},
});
constexpr auto kNameOperand = std::to_array<Operand>({
    {.name = "PREFIX",
     .count = Operand::Count::optional,
     .help = "Only clients whose name begins so."},
});
constexpr auto kClientsOptions = std::to_array<Option>({
    whole("limit", 1, 1'000'000'000, {.letter = 'l'}, "At most so many."),
    kJsonLines,
});
constexpr auto kHistoryOptions = std::to_array<Option>({
    text("holder", "NAME", {}, "Only of this holder."),
    text("client", "NAME", {}, "Only of clients of this name."),
    text("client-id", "CLIENT", {}, "Only of this client: 17, or tcp:17."),
    text("event", "EVENT",
         {.letter = 'e',
          .choices = "queued granted released expired disconnected revoked gave_up refused "
                     "auth_failed slow_wait slow_hold resized kicked started"},
         "Only of this kind."),
    text("since", "TIME", {},
         "Not older than this: how long ago (90s, 10m, 2h), or a time of this machine's clock "
         "(14:05, 2026-01-31, 2026-01-31T14:05)."),
    whole("limit", 1, 1000, {.letter = 'l', .by_default = "100"}, "At most so many, the latest."),
    kJsonLines,
});
constexpr auto kHistoryExamples = std::to_array<Example>({
    {"lockctl history deploy", "What happened to one key."},
    {"lockctl history --event expired --since 1h", "Leases that ran out within the hour."},
});
constexpr auto kTopOptions = std::to_array<Option>({
    duration("interval", kMayBeZero, {.letter = 'i', .by_default = "1"}, "How often to look."),
    text("sort", "ORDER", {.letter = 'o', .choices = kKeyOrders, .by_default = "waiters"},
         "What comes first: the names, the longest queues, the longest wait, or what is held for "
         "longest."),
    text("filter", "TEXT", {.letter = 'f'}, "Only keys that have this in them, anywhere."),
});

// --- signals ---

constexpr auto kListenOptions = std::to_array<Option>({
    text("group", "NAME", {.letter = 'g'},
         "Share the signals with all others of this group: one gets each."),
    whole("count", 1, config::kSecondsMax, {.letter = 'c'}, "Exit after so many signals."),
    duration("wait", kMayBeZero, {.alias = "timeout", .letter = 'w'},
             "Exit with 1 when none comes for so long."),
    kJsonLines,
});
constexpr auto kListenOperands = std::to_array<Operand>({
    {.name = "PATTERN",
     .count = Operand::Count::many,
     .help = "Channels: words with dots between, where * is any word and > the rest."},
});
constexpr auto kSignalOperands = std::to_array<Operand>({
    {.name = "CHANNEL", .help = "Where to: words with dots between."},
    {.name = "PAYLOAD", .help = "What to say: one line, not blank."},
});

// --- bench ---

constexpr auto kBenchOptions = std::to_array<Option>({
    whole("workers", 1, 100'000, {.by_default = "10"}, "How many work at once."),
    whole("rounds", 1, 1'000'000'000, {.by_default = "50"},
          "How often each acquires and releases."),
    text("key", "KEY", {.by_default = "bench"}, "The beginning of every worker's key."),
    boolean("shared-key", {}, "All workers contend for KEY itself."),
    duration("timeout", kMayBeZero, {.by_default = "30"},
             "How long an acquire waits, in whole seconds."),
    duration("lease", kOneSecond, {.by_default = "10"}, "The lease, in whole seconds."),
    whole("connections", 0, 1000, {.by_default = "1"},
          "How many connections a worker goes round on; 0 and 1 are one."),
    whole("warmup", 0, 1'000'000'000, {.by_default = "10"},
          "How many rounds before those that count."),
    whole("pipeline", 1, 10'000, {.by_default = "1"},
          "How many rounds a worker has under way at once, each on a key of its own. Not with "
          "--shared-key: a worker would wait behind its own hold."),
    // Hides that of the connection.
    boolean(
        "http", {},
        "Use the HTTP API. The servers are then HTTP addresses; without any, LOCKD_HTTP_ADDR or "
        "that of the file is used."),
    kJson,
});
constexpr auto kBenchExamples = std::to_array<Example>({
    {"lockctl bench --workers 100 --rounds 1000", "A hundred at once, each on its own key."},
    {"lockctl bench --shared-key --workers 20", "Twenty in one queue."},
    {"lockctl bench --servers a:6388,b:6388 --pipeline 16", "Two servers, kept busy."},
    {"lockctl bench --http --servers http://127.0.0.1:8080 --json", "The HTTP API, as a record."},
});

// --- files, and lockctl about itself ---

constexpr auto kDirectoryOperand = std::to_array<Operand>({
    {.name = "DIR", .help = "What the server was given as --wal.", .kind = Option::Kind::directory},
});
constexpr auto kShellOperand = std::to_array<Operand>({
    {.name = "SHELL", .help = "Which shell.", .choices = "bash zsh fish"},
});
constexpr auto kCommandOperand = std::to_array<Operand>({
    {.name = "COMMAND",
     .count = Operand::Count::any,
     .help = "Which command's page; lockctl's own when none is named."},
});
constexpr auto kManOptions = std::to_array<Option>({
    directory("directory", {.letter = 'd', .value = "DIR"},
              "Write all pages into this directory instead."),
});

constexpr auto kWalCommands = std::to_array<Command>({
    {.name = "inspect",
     .summary = "Print what is in a journal",
     .description = "Shows every segment, frame and event, damaged or not, as far as it can be "
                    "read. Changes nothing, and needs no lock: of a journal in use it shows what "
                    "was there a moment ago.",
     .operands = kDirectoryOperand,
     .options = kJsonLinesOnly,
     .see_also = "lockctl"},
    {.name = "verify",
     .summary = "Say whether a server could start from a journal",
     .description = "Reads all of it, and exits with 65 when it is damaged. A torn end, which a "
                    "crash leaves and a start cuts off, is not damage.",
     .operands = kDirectoryOperand,
     .options = kJsonOnly,
     .see_also = "lockctl"},
});

constexpr auto kNodeOperand = std::to_array<Operand>({
    {.name = "NODE", .help = "What the server is called, as lockctl cluster status shows it."},
});
constexpr auto kClusterActOptions = std::to_array<Option>({
    duration("timeout", kMoreThanZero, {.letter = 'w', .by_default = "30"},
             "How long to wait until it is done. It may be done later all the same."),
    kJson,
});
constexpr auto kTransferExamples = std::to_array<Example>({
    {"lockctl cluster transfer b --cluster locks-1,locks-2,locks-3",
     "Before the machine of the leader is taken down."},
});
constexpr auto kClusterCommands = std::to_array<Command>({
    {.name = "status",
     .summary = "Say what each server of a cluster is",
     .description = "Asks every server that is named, by --cluster or --server, for its role, the "
                    "leader's epoch, how many changes it is behind, whether it could take over "
                    "and why not, how large the store of a member of etcd is, and its version. "
                    "Exits with 75 unless one of them certainly leads, and all are ready and of "
                    "its epoch. Needs the right read.",
     .options = kJsonLinesOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "inspect",
     .summary = "Print what each server of a cluster knows of it",
     .description = "Asks every server that is named, by --cluster or --server, for whom it "
                    "follows, where the chain of batches in etcd begins and ends, how far it has "
                    "come, what it cannot read and why, versions, settings, and how large etcd's "
                    "store is. Each answers itself, also one that can neither follow nor lead. "
                    "Exits with 65 when one cannot read the chain, else with 75 when one does not "
                    "answer. Needs the right read.",
     .options = kJsonLinesOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "snapshot",
     .summary = "Have the leader write a snapshot into the chain",
     .description = "What was in the chain before is needed no more: a server that cannot read a "
                    "batch of it goes on from the snapshot. Waits until that is so, and exits with "
                    "75 when it is not in time. Needs the right admin.",
     .options = kClusterActOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "transfer",
     .summary = "Have the leader hand over to another server",
     .description = "The leader finishes what was asked of it, hands over, and follows. What is "
                    "held stays held; clients connect again. The server must be ready. Waits until "
                    "it leads, and exits with 75 when it does not in time: then another may. Needs "
                    "the right admin.",
     .operands = kNodeOperand,
     .options = kClusterActOptions,
     .shared = kConnection,
     .examples = kTransferExamples,
     .see_also = "lockctl"},
});

constexpr auto kTokenNameOperand = std::to_array<Operand>({
    {.name = "NAME",
     .help = "What the auth token is called, in the log and wherever clients are shown."},
});
constexpr auto kTokenOptions = std::to_array<Option>({
    text("rights", "RIGHTS", {.by_default = "lock,signal,read"},
         "What its clients may do, with commas between: lock, signal, read, admin."),
    text("key", "PREFIX", {.repeats = true, .default_note = "all keys"},
         "A prefix of the keys and channels that they may use. May be given several times."),
    text("expires", "DATE", {.default_note = "never"},
         "From 00:00 UTC of that day on it is good no more: 2027-01-01."),
    file("secret-file", {},
         "Write the secret into this file, which must not exist and which only its owner can read, "
         "instead of printing it."),
    kJson,
});
constexpr auto kTokenExamples = std::to_array<Example>({
    {"lockctl token new billing --rights lock,signal --key billing/ \\\n"
     "  --secret-file billing.token >> access.toml",
     "An auth token for one service, and what the server has to know of it."},
});
constexpr auto kTokenCommands = std::to_array<Command>({
    {.name = "new",
     .summary = "Make an auth token, and its table for the file of --access",
     .description = "Prints a random secret, for the client, and the table by which the server "
                    "knows it: its SHA-256 and what it lets a client do. Asks no server, and keeps "
                    "nothing: the secret is seen here only.",
     .operands = kTokenNameOperand,
     .options = kTokenOptions,
     .examples = kTokenExamples,
     .see_also = "lockctl"},
});

// --- what they exit with ---

constexpr auto kSuccess = std::to_array<Note>({{"0", "Done."}});
constexpr auto kFailures = std::to_array<Note>({
    {"1",
     "Not to be had: somebody else holds it, the wait was over, or what was to be renewed or "
     "released is not held under that handle, or by that token of the line protocol."},
    {"64", "The command line is wrong; nothing was done (EX_USAGE)."},
    {"65",
     "The request makes no sense to the server, such as another limit than that of a semaphore in "
     "use; or a journal is damaged, or the chain of a cluster cannot be read (EX_DATAERR)."},
    {"66",
     "A directory or file that was named cannot be read, or has no journal in it (EX_NOINPUT)."},
    {"69", "The server cannot be reached, does not answer, or has gone away (EX_UNAVAILABLE)."},
    {"70", "A bug in lockctl (EX_SOFTWARE)."},
    {"71", "The system refused: no memory, no more processes (EX_OSERR)."},
    {"74", "The output cannot be written (EX_IOERR)."},
    {"75",
     "The server cannot do it now: too many keys or waiters, a full disk, it is stopping, or it "
     "does not lead its cluster. Try again later (EX_TEMPFAIL)."},
    {"76",
     "What the server answered makes no sense, or it is too old for what was asked "
     "(EX_PROTOCOL)."},
    {"77",
     "The auth token is wrong or missing, or lacks the right or the key; or the certificate cannot "
     "be trusted (EX_NOPERM)."},
    {"78", "A setting is wrong or missing: a variable, the file, an address (EX_CONFIG)."},
});
constexpr auto kExits = joined(kSuccess, kFailures);

// As flock does: the status of the command, unless it is one of ours.
constexpr auto kStatusOfCommand = std::to_array<Note>({
    {"0 to 255", "That of the command, when it has run; or else:"},
});
constexpr auto kRunFailures = std::to_array<Note>({
    {"79", "The lock was lost while the command ran, and the command was stopped."},
    {"126", "The command cannot be executed."},
    {"127", "The command was not found."},
    {"128+n", "Signal n ended the command; or ended lockctl while it waited in the queue."},
});
constexpr auto kRunExits = joined(kStatusOfCommand, kFailures, kRunFailures);

constexpr auto kHoldEnds = std::to_array<Note>({
    {"79", "The lock was lost."},
    {"128+n", "Signal n ended it."},
});
constexpr auto kHoldExits = joined(kSuccess, kFailures, kHoldEnds);

// --- the connection ---

constexpr auto kFiles = std::to_array<Note>({
    {"$XDG_CONFIG_HOME/lockd.toml, ~/.config/lockd.toml",
     "Settings, under the names of the options of the connection."},
});
constexpr auto kConnectionFiles = std::to_array<Section>({{"Files", kFiles}});

constexpr std::string_view kConnectionText =
    "Every command that asks a server takes these options, before its own name or behind it. They "
    "are settings, which come from the command line, from variables of the environment, and from "
    "the file lockd.toml in $XDG_CONFIG_HOME, or ~/.config. The command line wins over the "
    "environment, and the environment over the file; with the server itself the environment comes "
    "first, here it is the person who types. In the file they have the names of the options: "
    "server = [\"a:6388\", \"b:6388\"].";

// --- all of them ---

constexpr auto kCommands = std::to_array<Command>({
    {.name = "run",
     .summary = "Run a command while holding a lock",
     .description = kRunText,
     .operands = kRunOperands,
     .options = kRunOptions,
     .shared = kConnection,
     .exits = kRunExits,
     .examples = kRunExamples,
     .see_also = "lockctl flock"},
    {.name = "hold",
     .summary = "Hold a lock while a descriptor is open, as in a script",
     .description = kHoldText,
     .operands = kHoldOperands,
     .options = kHoldOptions,
     .shared = kConnection,
     .exits = kHoldExits,
     .examples = kHoldExamples,
     .see_also = "lockctl flock"},
    {.name = "acquire",
     .summary = "Reserve a key, and print its handle",
     .description = kAcquireText,
     .operands = kAcquireOperands,
     .options = kAcquireOptions,
     .shared = kConnection,
     .examples = kAcquireExamples,
     .see_also = "lockctl"},
    {.name = "renew",
     .summary = "Renew the lease of a key",
     .description = kByHandle,
     .operands = kHandleOperands,
     .options = kRenewOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "release",
     .summary = "Give a key back",
     .description = kReleaseText,
     .operands = kReleaseOperands,
     .options = kReleaseOptions,
     .shared = kConnection,
     .examples = kReleaseExamples,
     .see_also = "lockctl"},
    {.name = "fence",
     .summary = "Print the fence of the last grant of a key",
     .description = "Prints the largest fence that has been granted for the key, or may have been. "
                    "Who writes under a smaller one comes too late.",
     .operands = kKeyOperand,
     .options = kJsonOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "list",
     .summary = "List keys, who holds them, and how many wait",
     .description =
         "Prints each key with its holders, fences and times. Of a server that lacks the "
         "command `api`, and whose HTTP port is not named, it prints what the "
         "statistics know, which is less.",
     .operands = kPrefixOperand,
     .options = kListOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "describe",
     .summary = "Show one key: its holders, and its queue",
     .description =
         "Shows every holder with its lease and everybody in the queue with the time waited; or "
         "all that one client has to do with.",
     .operands = kDescribeOperands,
     .options = kDescribeOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "watch",
     .summary = "Show what happens to keys, as it happens",
     .description = "Prints a line for every grant, release, expiry and wait.",
     .operands = kPrefixOperand,
     .options = kJsonLinesOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "history",
     .summary = "Print what has happened, the latest last",
     .description = "Prints what the server remembers: of one key, or of all. Beside what watch "
                    "shows there are refusals, failed authentication, waits and holds that were "
                    "slow, and what admins did. The server keeps it in memory, and the latest of "
                    "it: a restart is the first entry.",
     .operands = kDescribeOperands,
     .options = kHistoryOptions,
     .shared = kConnection,
     .examples = kHistoryExamples,
     .see_also = "lockctl"},
    {.name = "clients",
     .summary = "List who is connected",
     .description = "Shows every connection: its id, where it comes from, who it says it is, what "
                    "it has, and how long it has been silent.",
     .operands = kNameOperand,
     .options = kClientsOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "disconnect",
     .summary = "Close the connection of a client",
     .description =
         "What it holds goes as with any connection that ends. Needs the right admin, and "
         "--reason.",
     .operands = kClientOperand,
     .options = kAdminOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "resize",
     .summary = "Change the limit of a semaphore that is in use",
     .description = "A larger limit grants to those who wait; a smaller one takes nothing away, "
                    "and grants nothing until enough was released. It is in force until nobody "
                    "holds or waits for the key. Needs the right admin.",
     .operands = kResizeOperands,
     .options = kAdminOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "stats",
     .summary = "Print the statistics of a server",
     .description = "Over the line port. With several servers, those of each; with --json an "
                    "object a line, in the order of the servers. Of a cluster, those of the server "
                    "that leads.",
     .options = kJsonOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "ping",
     .summary = "See whether servers answer, and how fast",
     .description = "Asks every server, and succeeds when all have answered. Of a cluster, all but "
                    "one follow, and say whom.",
     .options = kPingOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "listen",
     .summary = "Print signals as they come",
     .description = "Prints the channel and the payload of each signal. With several servers it "
                    "listens to all of them, of a cluster to the one that leads: when another "
                    "takes over it ends.",
     .operands = kListenOperands,
     .options = kListenOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "signal",
     .summary = "Send a signal",
     .description = "Sends it to everybody who listens, and prints how many it reached. With "
                    "several servers, over the one that the channel's name belongs to.",
     .operands = kSignalOperands,
     .options = kJsonOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "top",
     .summary = "Watch hot keys, queues and rates, full screen",
     .description =
         "Keys with the longest queues first, with rates and times; of servers that lack the "
         "command `api`, and whose HTTP port is not named, from their statistics, which do not say "
         "since when a key is held. k, w, t and h sort by key, by waiters, by the time waited and "
         "by how long it is held; / takes a filter, which Enter keeps and Esc drops; q ends it. "
         "Sorted otherwise than by waiters, or filtered, it looks through the first 10,000 keys.",
     .options = kTopOptions,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "bench",
     .summary = "Put load on a server, and measure it",
     .description = "Every worker acquires and releases, round after round, and every reply is "
                    "checked. Prints how many rounds were done a second, and how long they took. "
                    "Works with every server that is compatible with dflockd.",
     .options = kBenchOptions,
     .shared = kConnection,
     .examples = kBenchExamples,
     .see_also = "lockctl"},
    {.name = "wal",
     .summary = "Look at a journal",
     .description = "Reads the journal of a server, and changes nothing.",
     .commands = kWalCommands,
     .see_also = "lockctl"},
    {.name = "cluster",
     .summary = "Look at a cluster, and operate it",
     .description = "Asks the servers of a cluster what they know, and its leader to act.",
     .commands = kClusterCommands,
     .see_also = "lockctl"},
    {.name = "whoami",
     .summary = "Say who we are to the server, and what we may do",
     .description = "Prints the name of the auth token or certificate, its rights, the prefixes of "
                    "the keys that they are for, when it expires, and where we come from. "
                    "Needs no right. Of several servers the first is asked.",
     .options = kJsonOnly,
     .shared = kConnection,
     .see_also = "lockctl"},
    {.name = "token",
     .summary = "Make auth tokens",
     .description = "Makes what clients show, and what the server's file of --access has of it.",
     .commands = kTokenCommands,
     .see_also = "lockctl"},
    {.name = "connection",
     .summary = "Say how any command is told where the server is",
     .description = kConnectionText,
     .options = kConnection,
     .sections = kConnectionFiles,
     .see_also = "lockctl"},
    {.name = "completion",
     .summary = "Print the completions for a shell",
     .description =
         "bash: source <(lockctl completion bash). zsh: put it into a file _lockctl of "
         "$fpath. fish: lockctl completion fish | source. Keys are those that the server has, "
         "asked as the environment and lockd.toml say.",
     .operands = kShellOperand,
     .see_also = "lockctl"},
    {.name = "man",
     .summary = "Print a manual page",
     .description = "Prints the page as roff: lockctl man run | man -l -",
     .operands = kCommandOperand,
     .options = kManOptions,
     .see_also = "lockctl"},
    {.name = "version", .summary = "Print the version", .see_also = "lockctl"},
});

constexpr auto kStandard = std::to_array<Option>({config::kHelp, config::kVersion});

constexpr std::string_view kDescription =
    "Talks to lockd, lockd-server and every server that is compatible with them: takes "
    "locks for commands, looks at what is held, sends signals, measures.\n"
    "\n"
    "Where the server is, and how to talk to it, is said by the options of the connection, by "
    "variables of the environment or by a file: lockctl connection has all of that.\n"
    "\n"
    "Standard output has what was asked for, standard error all else. Colours appear on a "
    "terminal only, and never when NO_COLOR is set.";

constexpr Command kProgram{.name = "lockctl",
                           .summary = "locks, for people and scripts",
                           .description = kDescription,
                           .options = kStandard,
                           .shared = kConnection,
                           .commands = kCommands,
                           .exits = kExits};

using Execute = int (*)(const Invocation&);

constexpr auto kExecutes = std::to_array<std::pair<std::string_view, Execute>>({
    {"run", execute_run},
    {"hold", execute_hold},
    {"acquire", execute_acquire},
    {"renew", execute_renew},
    {"release", execute_release},
    {"fence", execute_fence},
    {"list", execute_list},
    {"describe", execute_describe},
    {"watch", execute_watch},
    {"history", execute_history},
    {"clients", execute_clients},
    {"disconnect", execute_disconnect},
    {"resize", execute_resize},
    {"stats", execute_stats},
    {"ping", execute_ping},
    {"listen", execute_listen},
    {"signal", execute_signal},
    {"top", execute_top},
    {"bench", execute_bench},
    {"wal inspect", execute_wal_inspect},
    {"wal verify", execute_wal_verify},
    {"cluster status", execute_cluster_status},
    {"cluster inspect", execute_cluster_inspect},
    {"cluster snapshot", execute_cluster_snapshot},
    {"cluster transfer", execute_cluster_transfer},
    {"whoami", execute_whoami},
    {"token new", execute_token_new},
    {"connection", execute_connection},
    {"completion", execute_completion},
    {"man", execute_man},
    {"version", execute_version},
});

}  // namespace

const Command& program() { return kProgram; }

std::span<const Option> connection_options() { return kConnection; }

int (*execute_of(const config::Place& place))(const Invocation& invocation) {
  std::string_view words = place.path;
  words.remove_prefix(std::min(kProgram.name.size() + 1, words.size()));
  const auto* const found = std::find_if(kExecutes.begin(), kExecutes.end(),
                                         [&](const auto& one) { return one.first == words; });
  return found == kExecutes.end() ? nullptr : found->second;
}

}  // namespace lockd::cli
