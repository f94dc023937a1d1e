// Every command and every reply, as conversations on one connection.
#include <gtest/gtest.h>

#include <string>

#include "sessions/line_script.h"
#include "support/line_client.h"

namespace lockd {
namespace {

const std::string kEmptyStats =
    R"(ok {"connections":1,"locks":[],"semaphores":[],"idle_locks":[],"idle_semaphores":[],)"
    R"("signal_channels":[]})";

const Script kLockScripts[] = {
    {"ping", {{"ping\n\n\n", "ok"}}},
    {"ping ignores its lines", {{"ping\nany \x01 thing\nat all\n", "ok"}}},
    {"a client names itself", {{"client\nann@build-7:4711\ndeploy\n", "ok"}}},
    {"a client names itself again",
     {{"client\nann\n\n", "ok"},
      {"l\nk\n0\n", "ok <token> 33"},
      {"client\nann\n\n", "ok"},
      {"client\nbob\n \t\n", "ok"},
      {"r\nk\n$1\n", "ok"}}},
    {"barrier", {{"barrier\n\n\n", "ok"}}},
    {"barrier ignores its lines", {{"barrier\n\x7f\n1 2 3\n", "ok"}}},
    {"stats of nothing", {{"stats\n\n\n", kEmptyStats}}},
    {"stats ignores its lines", {{"stats\n\x01\n9 9 9 9\n", kEmptyStats}}},
    {"acquire", {{"l\nk\n10\n", "ok <token> 33"}}},
    {"acquire with a lease", {{"l\nk\n10 60\n", "ok <token> 60"}}},
    {"try", {{"l\nk\n0\n", "ok <token> 33"}}},
    {"try what is held", {{"l\nk\n0\n", "ok <token> 33"}, {"l\nk\n0\n", "timeout"}}},
    {"keys are apart", {{"l\na\n0\n", "ok <token> 33"}, {"l\nb\n0\n", "ok <token> 33"}}},
    {"release", {{"l\nk\n0\n", "ok <token> 33"}, {"r\nk\n$1\n", "ok"}}},
    {"release twice",
     {{"l\nk\n0\n", "ok <token> 33"}, {"r\nk\n$1\n", "ok"}, {"r\nk\n$1\n", "error"}}},
    {"acquire again after release",
     {{"l\nk\n0\n", "ok <token> 33"}, {"r\nk\n$1\n", "ok"}, {"l\nk\n0\n", "ok <token> 33"}}},
    {"an old token releases nothing",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"r\nk\n$1\n", "ok"},
      {"l\nk\n0\n", "ok <token> 33"},
      {"r\nk\n$1\n", "error"},
      {"n\nk\n$1\n", "error"},
      {"n\nk\n$2\n", "ok 33"}}},
    {"release of an unknown key",
     {{"r\nk\n" + kUnknownToken + "\n", "error"}, {"ping\n\n\n", "ok"}}},
    {"release with what is no token", {{"r\nk\nabc\n", "error"}, {"ping\n\n\n", "ok"}}},
    {"release of another key", {{"l\nk\n0\n", "ok <token> 33"}, {"r\nj\n$1\n", "error"}}},
    {"release in the other namespace", {{"l\nk\n0\n", "ok <token> 33"}, {"sr\nk\n$1\n", "error"}}},
    {"renew", {{"l\nk\n0 60\n", "ok <token> 60"}, {"n\nk\n$1\n", "ok 60"}}},
    {"renew with a lease", {{"l\nk\n0 60\n", "ok <token> 60"}, {"n\nk\n$1 90\n", "ok 90"}}},
    {"renew uses the lease of the grant",
     {{"l\nk\n0 60\n", "ok <token> 60"}, {"n\nk\n$1 90\n", "ok 90"}, {"n\nk\n$1\n", "ok 60"}}},
    {"renew may shorten", {{"l\nk\n0 60\n", "ok <token> 60"}, {"n\nk\n$1 5\n", "ok 5"}}},
    {"renew with a wrong token",
     {{"l\nk\n0\n", "ok <token> 33"}, {"n\nk\n" + kUnknownToken + "\n", "error"}}},
    {"renew after release",
     {{"l\nk\n0\n", "ok <token> 33"}, {"r\nk\n$1\n", "ok"}, {"n\nk\n$1\n", "error"}}},
    {"renew of an unknown key",
     {{"n\nk\n" + kUnknownToken + " 5\n", "error"}, {"ping\n\n\n", "ok"}}},
    {"renew in the other namespace", {{"l\nk\n0\n", "ok <token> 33"}, {"sn\nk\n$1\n", "error"}}},
    {"lock and semaphore of one name",
     {{"l\nk\n0\n", "ok <token> 33"}, {"sl\nk\n0 1\n", "ok <token> 33"}}},
    {"longest lease",
     {{"l\nk\n0 9223372036\n", "ok <token> 9223372036"},
      {"n\nk\n$1\n", "ok 9223372036"},
      {"r\nk\n$1\n", "ok"}}},
    {"longest wait", {{"l\nk\n9223372036\n", "ok <token> 33"}}},
    {"a token with blanks around it", {{"l\nk\n0\n", "ok <token> 33"}, {"r\nk\n \t$1\t \n", "ok"}}},
};

const Script kSemaphoreScripts[] = {
    {"semaphore", {{"sl\nk\n0 1\n", "ok <token> 33"}}},
    {"semaphore with a lease", {{"sl\nk\n10 3 60\n", "ok <token> 60"}}},
    {"up to its limit",
     {{"sl\nk\n0 2\n", "ok <token> 33"},
      {"sl\nk\n0 2\n", "ok <token> 33"},
      {"sl\nk\n0 2\n", "timeout"},
      {"sr\nk\n$1\n", "ok"},
      {"sl\nk\n0 2\n", "ok <token> 33"}}},
    {"each its own lease",
     {{"sl\nk\n0 2 40\n", "ok <token> 40"},
      {"sl\nk\n0 2 50\n", "ok <token> 50"},
      {"sn\nk\n$1\n", "ok 40"},
      {"sn\nk\n$2\n", "ok 50"}}},
    {"limit mismatch",
     {{"sl\nk\n0 2\n", "ok <token> 33"},
      {"sl\nk\n0 3\n", "error_limit_mismatch"},
      {"sl\nk\n5 1\n", "error_limit_mismatch"},
      {"se\nk\n3\n", "error_limit_mismatch"},
      {"ping\n\n\n", "ok"}}},
    {"an idle key takes any limit",
     {{"sl\nk\n0 2\n", "ok <token> 33"}, {"sr\nk\n$1\n", "ok"}, {"sl\nk\n0 3\n", "ok <token> 33"}}},
    {"largest limit", {{"sl\nk\n0 2147483647\n", "ok <token> 33"}}},
    {"semaphore release twice",
     {{"sl\nk\n0 2\n", "ok <token> 33"}, {"sr\nk\n$1\n", "ok"}, {"sr\nk\n$1\n", "error"}}},
    {"a lock's command on a semaphore",
     {{"sl\nk\n0 1\n", "ok <token> 33"}, {"r\nk\n$1\n", "error"}}},
    {"semaphore renew", {{"sl\nk\n0 2\n", "ok <token> 33"}, {"sn\nk\n$1 70\n", "ok 70"}}},
    {"semaphore enqueue", {{"se\nk\n2\n", "acquired <token> 33"}}},
    {"semaphore enqueue with a lease", {{"se\nk\n2 44\n", "acquired <token> 44"}}},
    {"semaphore enqueue, wait",
     {{"se\nk\n2\n", "acquired <token> 33"}, {"sw\nk\n0\n", "ok $1 33"}}},
    {"semaphore enqueue twice", {{"se\nk\n2\n", "acquired <token> 33"}, {"se\nk\n2\n", "error"}}},
    {"semaphore wait for nothing", {{"sw\nk\n0\n", "error"}, {"ping\n\n\n", "ok"}}},
    {"semaphore queued",
     {{"sl\nk\n0 1\n", "ok <token> 33"}, {"se\nk\n1\n", "queued"}, {"sw\nk\n0\n", "timeout"}}},
};

const Script kTwoPhaseScripts[] = {
    {"enqueue", {{"e\nk\n\n", "acquired <token> 33"}}},
    {"enqueue with a lease", {{"e\nk\n50\n", "acquired <token> 50"}}},
    {"enqueue with blanks", {{"e\nk\n \t \n", "acquired <token> 33"}}},
    {"acquired, wait", {{"e\nk\n50\n", "acquired <token> 50"}, {"w\nk\n0\n", "ok $1 50"}}},
    {"acquired, wait, wait",
     {{"e\nk\n\n", "acquired <token> 33"}, {"w\nk\n0\n", "ok $1 33"}, {"w\nk\n0\n", "error"}}},
    {"acquired, enqueue", {{"e\nk\n\n", "acquired <token> 33"}, {"e\nk\n\n", "error"}}},
    {"acquired, wait, enqueue",
     {{"e\nk\n\n", "acquired <token> 33"}, {"w\nk\n5\n", "ok $1 33"}, {"e\nk\n\n", "queued"}}},
    {"acquired, release, wait",
     {{"e\nk\n\n", "acquired <token> 33"}, {"r\nk\n$1\n", "ok"}, {"w\nk\n0\n", "error"}}},
    {"acquired, release, enqueue",
     {{"e\nk\n\n", "acquired <token> 33"},
      {"r\nk\n$1\n", "ok"},
      {"e\nk\n\n", "acquired <token> 33"}}},
    {"acquired, wait, release",
     {{"e\nk\n\n", "acquired <token> 33"}, {"w\nk\n0\n", "ok $1 33"}, {"r\nk\n$1\n", "ok"}}},
    {"acquired, renew, wait gives the lease of the grant",
     {{"e\nk\n50\n", "acquired <token> 50"},
      {"n\nk\n$1 99\n", "ok 99"},
      {"w\nk\n0\n", "ok $1 50"}}},
    {"wait for nothing", {{"w\nk\n0\n", "error"}, {"ping\n\n\n", "ok"}}},
    {"wait for a lock of its own", {{"l\nk\n0\n", "ok <token> 33"}, {"w\nk\n0\n", "error"}}},
    {"queued", {{"l\nk\n0\n", "ok <token> 33"}, {"e\nk\n\n", "queued"}}},
    {"queued twice",
     {{"l\nk\n0\n", "ok <token> 33"}, {"e\nk\n\n", "queued"}, {"e\nk\n\n", "error"}}},
    {"queued, wait gives the place up",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"e\nk\n\n", "queued"},
      {"w\nk\n0\n", "timeout"},
      {"w\nk\n0\n", "error"},
      {"e\nk\n\n", "queued"}}},
    {"queued, granted, wait",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"e\nk\n70\n", "queued"},
      {"r\nk\n$1\n", "ok"},
      {"w\nk\n0\n", "ok <token> 70"},
      {"r\nk\n$2\n", "ok"}}},
    {"queued, granted, enqueue",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"e\nk\n\n", "queued"},
      {"r\nk\n$1\n", "ok"},
      {"e\nk\n\n", "error"},
      {"l\nk\n0\n", "timeout"}}},
    {"one state per key",
     {{"e\na\n\n", "acquired <token> 33"}, {"e\nb\n\n", "acquired <token> 33"}}},
    {"one state per namespace",
     {{"e\nk\n\n", "acquired <token> 33"}, {"se\nk\n1\n", "acquired <token> 33"}}},
    {"wait in the other namespace", {{"e\nk\n\n", "acquired <token> 33"}, {"sw\nk\n0\n", "error"}}},
    {"nobody passes a queue",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"e\nk\n\n", "queued"},
      {"r\nk\n$1\n", "ok"},
      {"l\nk\n0\n", "timeout"},
      {"w\nk\n0\n", "ok <token> 33"}}},
};

const Script kDetailedScripts[] = {
    {"already enqueued",
     {{"e\nk\n\n", "acquired <token> 33"}, {"e\nk\n\n", "error_already_enqueued"}}},
    {"already queued",
     {{"l\nk\n0\n", "ok <token> 33"},
      {"e\nk\n\n", "queued"},
      {"e\nk\n\n", "error_already_enqueued"},
      {"ping\n\n\n", "ok"}}},
    {"semaphore already enqueued",
     {{"se\nk\n1\n", "acquired <token> 33"}, {"se\nk\n1\n", "error_already_enqueued"}}},
    {"not enqueued", {{"w\nk\n0\n", "error_not_enqueued"}, {"ping\n\n\n", "ok"}}},
    {"semaphore not enqueued", {{"sw\nk\n0\n", "error_not_enqueued"}}},
    {"not enqueued any more",
     {{"e\nk\n\n", "acquired <token> 33"},
      {"w\nk\n0\n", "ok $1 33"},
      {"w\nk\n0\n", "error_not_enqueued"}}},
    {"a violation is still an error", {{"x\nk\n0\n", "error!"}}},
    {"a timeout is still one", {{"l\nk\n0\n", "ok <token> 33"}, {"l\nk\n0\n", "timeout"}}},
};

const Script kSignalScripts[] = {
    {"nobody listens", {{"signal\na.b\nhello\n", "ok 0"}}},
    {"listen", {{"listen\na.b\n\n", "ok"}}},
    {"listen with a group", {{"listen\na.>\nthe group\n", "ok"}}},
    {"listen twice", {{"listen\na\n\n", "ok"}, {"listen\na\n\n", "ok"}}},
    {"unlisten", {{"listen\na\n\n", "ok"}, {"unlisten\na\n\n", "ok"}, {"signal\na\nx\n", "ok 0"}}},
    {"unlisten of nothing", {{"unlisten\na\n\n", "ok"}, {"unlisten\na\ng\n", "ok"}}},
    {"unlisten of one group leaves the other",
     {{"listen\na\ng\n", "ok"}, {"listen\na\n\n", "ok"}, {"unlisten\na\ng\n", "ok"}}},
    {"patterns that do not match",
     {{"listen\na.>\n\n", "ok"},
      {"listen\nb.*\n\n", "ok"},
      {"signal\na\nx\n", "ok 0"},
      {"signal\nb\nx\n", "ok 0"},
      {"signal\nb.c.d\nx\n", "ok 0"}}},
    {"patterns of wildcards",
     {{"listen\n*\n\n", "ok"}, {"listen\n>\n\n", "ok"}, {"listen\n*.*.>\n\n", "ok"}}},
    {"empty tokens are literals", {{"listen\na..b\n\n", "ok"}, {"signal\na.b\nx\n", "ok 0"}}},
    {"wildcards in a payload are nothing special", {{"signal\na\n  * > \t \n", "ok 0"}}},
    {"a payload of blanks and a word", {{"signal\na\n  x \t \n", "ok 0"}}},
    {"the longest payload", {{"signal\nab\n" + std::string(65'536 - 5 - 2, 'p') + "\n", "ok 0"}}},
    {"one byte more", {{"signal\nab\n" + std::string(65'536 - 5 - 1, 'p') + "\n", "error!"}}},
    {"the longest line", {{"signal\nab\n" + std::string(65'536, 'p') + "\n", "error!"}}},
    {"longer than any line", {{"signal\nab\n" + std::string(65'537, 'p') + "\n", "error!"}}},
};

void play_all(std::span<const Script> scripts, const Options& options = line_options()) {
  for (const Script& script : scripts) play_every_way(script, options);
}

TEST(LineProtocol, Locks) { play_all(kLockScripts); }
TEST(LineProtocol, Semaphores) { play_all(kSemaphoreScripts); }
TEST(LineProtocol, TwoPhases) { play_all(kTwoPhaseScripts); }
TEST(LineProtocol, Signals) { play_all(kSignalScripts); }

TEST(LineProtocol, DetailedErrors) {
  Options options = line_options();
  options.detailed_errors = true;
  play_all(kDetailedScripts, options);
}

}  // namespace
}  // namespace lockd
