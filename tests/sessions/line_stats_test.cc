// The statistics, to the byte, but for what the clock makes of them.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "support/line_client.h"

namespace lockd {
namespace {

// Times are numbers; which, depends on when.
std::string timeless(const std::string& stats) {
  static const std::regex time(R"re("(lease_expires_in_s|idle_s)":[0-9]+(\.[0-9]+)?([,}]))re");
  return std::regex_replace(stats, time, "\"$1\":T$3");
}

struct Parts {
  int connections = 1;
  std::string locks{}, semaphores{}, idle_locks{}, idle_semaphores{}, signal_channels{};
};

std::string stats_of(const Parts& parts) {
  return "ok {\"connections\":" + std::to_string(parts.connections) + ",\"locks\":[" + parts.locks +
         "],\"semaphores\":[" + parts.semaphores + "],\"idle_locks\":[" + parts.idle_locks +
         "],\"idle_semaphores\":[" + parts.idle_semaphores + "],\"signal_channels\":[" +
         parts.signal_channels + "]}";
}

std::string ask_stats(LineClient& client) { return timeless(client.ask("stats\n\n\n")); }

TEST(LineStats, OfALock) {
  LineServer server;
  LineClient client = server.connect();
  const std::string token = token_of(client.ask(request("l", "my-job", "0")));
  EXPECT_EQ(ask_stats(client),
            stats_of({.locks = R"({"key":"my-job","owner_conn_id":1,"lease_expires_in_s":T,)"
                               R"("waiters":0})"}));
  // Connections are counted before the keys are looked at: not in one instant.
  LineClient waiter = server.connect();
  await_stats(client, "{\"connections\":2,");
  waiter.send(request("l", "my-job", "60"));
  EXPECT_EQ(timeless(await_stats(client, "\"waiters\":1")),
            stats_of({.connections = 2,
                      .locks = R"({"key":"my-job","owner_conn_id":1,"lease_expires_in_s":T,)"
                               R"("waiters":1})"}));
  EXPECT_EQ(client.ask(request("r", "my-job", token)), "ok");
  EXPECT_EQ(ask_stats(client),
            stats_of({.connections = 2,
                      .locks = R"({"key":"my-job","owner_conn_id":2,"lease_expires_in_s":T,)"
                               R"("waiters":0})"}));
  waiter.close();
  EXPECT_EQ(timeless(await_stats(client, "{\"connections\":1,")),
            stats_of({.idle_locks = R"({"key":"my-job","idle_s":T})"}));
}

TEST(LineStats, OfASemaphore) {
  LineServer server;
  LineClient client = server.connect();
  const std::string first = token_of(client.ask(request("sl", "pool", "0 3")));
  const std::string second = token_of(client.ask(request("sl", "pool", "0 3")));
  EXPECT_EQ(ask_stats(client),
            stats_of({.semaphores = R"({"key":"pool","limit":3,"holders":2,"waiters":0})"}));
  EXPECT_EQ(client.ask(request("sr", "pool", first)), "ok");
  EXPECT_EQ(client.ask(request("sr", "pool", second)), "ok");
  EXPECT_EQ(ask_stats(client), stats_of({.idle_semaphores = R"({"key":"pool","idle_s":T})"}));
}

TEST(LineStats, OfSignals) {
  LineServer server;
  LineClient client = server.connect();
  LineClient other = server.connect();
  EXPECT_EQ(client.ask(request("listen", "a.>", "g")), "ok");
  EXPECT_EQ(other.ask(request("listen", "a.>", "g")), "ok");
  EXPECT_EQ(ask_stats(client),
            stats_of({.connections = 2,
                      .signal_channels = R"({"pattern":"a.>","group":"g","listeners":2})"}));
  EXPECT_EQ(client.ask(request("unlisten", "a.>", "g")), "ok");
  EXPECT_EQ(other.ask(request("unlisten", "a.>", "g")), "ok");
  EXPECT_EQ(client.ask(request("listen", "b", "")), "ok");
  EXPECT_EQ(ask_stats(client),
            stats_of({.connections = 2, .signal_channels = R"({"pattern":"b","listeners":1})"}));
}

TEST(LineStats, NamesAreEscaped) {
  LineServer server;
  LineClient client = server.connect();
  const std::string name = "a\"b\\c/d cl\xc3\xa9 \xf0\x9f\x94\x92";
  const std::string escaped = "\"a\\\"b\\\\c/d cl\xc3\xa9 \xf0\x9f\x94\x92\"";
  ASSERT_EQ(masked(client.ask(request("l", name, "0"))), "ok <token> 33");
  ASSERT_EQ(masked(client.ask(request("sl", name, "0 1"))), "ok <token> 33");
  ASSERT_EQ(client.ask(request("listen", name, name)), "ok");
  EXPECT_EQ(
      ask_stats(client),
      stats_of({.locks = "{\"key\":" + escaped +
                         R"(,"owner_conn_id":1,"lease_expires_in_s":T,"waiters":0})",
                .semaphores = "{\"key\":" + escaped + R"(,"limit":1,"holders":1,"waiters":0})",
                .signal_channels =
                    "{\"pattern\":" + escaped + ",\"group\":" + escaped + ",\"listeners\":1}"}));
}

TEST(LineStats, ShowWhatCameBeforeThemInThePipeline) {
  LineServer server;
  LineClient client = server.connect();
  client.send("l\na\n0\nstats\n\n\nl\nb\n0\nstats\n\n\n");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 33");
  const std::string first = client.read_line();
  EXPECT_NE(first.find("\"key\":\"a\""), std::string::npos);
  EXPECT_EQ(first.find("\"key\":\"b\""), std::string::npos);
  EXPECT_EQ(masked(client.read_line()), "ok <token> 33");
  EXPECT_NE(client.read_line().find("\"key\":\"b\""), std::string::npos);
}

// What comes while they are built must not ask for them again: the second answer would be taken for
// that of a later request, and show what was true before it.
TEST(LineStats, AreAskedForOnceHoweverTheStreamIsCut) {
  LineServer server;
  LineClient client = server.connect();
  for (int round = 0; round < 200; ++round) {
    client.send("stats\n\n\n");
    client.send("l\nk\n0\nstats\n\n\n");
    client.read_line();
    const std::string grant = client.read_line();
    const std::string stats = client.read_line();
    ASSERT_NE(stats.find(R"("locks":[{"key":"k",)"), std::string::npos) << stats;
    ASSERT_EQ(client.ask(request("r", "k", token_of(grant))), "ok");
  }
}

// The time left of a lease is at most the lease, and a number that JSON knows.
TEST(LineStats, TimesAreNumbers) {
  LineServer server;
  LineClient client = server.connect();
  ASSERT_EQ(masked(client.ask(request("l", "k", "0 9223372036"))), "ok <token> 9223372036");
  const std::string stats = client.ask("stats\n\n\n");
  std::smatch found;
  const std::regex lease(R"("lease_expires_in_s":(-?[0-9]+(\.[0-9]+)?),)");
  ASSERT_TRUE(std::regex_search(stats, found, lease)) << stats;
  EXPECT_LE(std::stod(found[1]), 9223372036.0);
  EXPECT_GE(std::stod(found[1]), 9223372036.0 - 60);
}

}  // namespace
}  // namespace lockd
