// The stream of what happens to keys.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Watches; whatever happens from now on is told.
HttpClient watch(HttpServer& server, std::string_view target = "/v1/events") {
  HttpClient watcher = server.browse();
  EXPECT_EQ(watcher.open_stream(target).field("Content-Type"), "text/event-stream");
  return watcher;
}

std::string next(HttpClient& watcher) { return shown(watcher.read_event()); }

TEST(HttpEvents, ALockFromHandToHand) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient watcher = watch(server);
  const std::int64_t a =
      client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)")).number("token");
  EXPECT_EQ(next(watcher),
            R"(granted {"at_unix_ms":<time>,"kind":"lock","key":"k","holder":"a","token":<token>,)"
            R"("limit":1,"holders":1,"waiters":0,"ttl_ms":60000,"waited_ms":<ms>})");
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire",
                             hold_json("k", "b", R"("ttl_ms":60000,"wait_ms":60000)")));
  EXPECT_EQ(next(watcher),
            R"(queued {"at_unix_ms":<time>,"kind":"lock","key":"k","holder":"b","limit":1,)"
            R"("holders":1,"waiters":1})");
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", a)).status, 200);
  EXPECT_EQ(next(watcher), R"(released {"at_unix_ms":<time>,"kind":"lock","key":"k","holder":"a",)"
                           R"("token":<token>,"limit":1,"holders":0,"waiters":1,"held_ms":<ms>})");
  const std::string granted = watcher.read_event();
  EXPECT_EQ(shown(granted),
            R"(granted {"at_unix_ms":<time>,"kind":"lock","key":"k","holder":"b","token":<token>,)"
            R"("limit":1,"holders":1,"waiters":0,"ttl_ms":60000,"waited_ms":<ms>})");
  EXPECT_NE(granted.find("\"token\":" + std::to_string(waiter.read_reply().number("token"))),
            std::string::npos);
}

TEST(HttpEvents, EveryWayToEnd) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient watcher = watch(server);
  const auto expect = [&](const std::string& event, const std::string& part) {
    const std::string told = next(watcher);
    EXPECT_TRUE(told.starts_with(event + " {")) << told;
    EXPECT_NE(told.find(part), std::string::npos) << told;
  };
  // A lease that runs out.
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":1)")).status, 200);
  expect("granted", R"("holder":"a")");
  expect("expired", R"("holder":"a")");
  // A line client that leaves.
  {
    LineClient line = server.connect();
    ASSERT_EQ(masked(line.ask(request("l", "k", "0"))), "ok <token> 33");
    expect("granted", R"("holder":"tcp:<id>")");
  }
  expect("disconnected", R"("holder":"tcp:<id>")");
  // A wait that runs out, and one that is given up.
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":600000)")).status, 200);
  expect("granted", R"("holder":"a")");
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "b", R"("wait_ms":1)")).status, 409);
  expect("queued", R"("holder":"b")");
  expect("gave_up", R"("waited_ms":<ms>,"reason":"timeout"})");
  {
    HttpClient leaver = server.browse();
    leaver.send(leaver.written("POST", "/v1/acquire", hold_json("k", "c", R"("wait_ms":60000)")));
    expect("queued", R"("holder":"c")");
  }
  expect("gave_up", R"("waited_ms":<ms>,"reason":"cancelled"})");
  // A semaphore.
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("s", "a", R"("limit":3)")).status, 200);
  expect("granted", R"("kind":"semaphore","key":"s","holder":"a","token":<token>,"limit":3,)");
}

// Whoever watches hears the same; who leaves takes nothing from the others; and nobody hears of
// what was before.
TEST(HttpEvents, WatchersComeAndGo) {
  Options options = http_options();
  options.threads = 1;  // which tells all of them together, now and then
  HttpServer server(options);
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("before", "a")).status, 200);
  HttpClient first = watch(server);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("one", "a")).status, 200);
  EXPECT_NE(next(first).find("\"one\""), std::string::npos);
  const auto expect = [](HttpClient& watcher, const std::string& key) {
    const std::string told = next(watcher);
    EXPECT_NE(told.find("\"" + key + "\""), std::string::npos) << told;
  };
  for (int i = 0; i < 20; ++i) {
    const std::string early = "early" + std::to_string(i);
    const std::string late = "late" + std::to_string(i);
    ASSERT_EQ(client.post("/v1/acquire", hold_json(early, "a")).status, 200);
    HttpClient passing = watch(server);
    ASSERT_EQ(client.post("/v1/acquire", hold_json(late, "a")).status, 200);
    expect(first, early);
    expect(first, late);
    expect(passing, late);
  }
}

// A name is only a name: it is written as JSON, and a line end in it could not even be asked for.
TEST(HttpEvents, HostileNamesAreOnlyNames) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient watcher = watch(server);
  ASSERT_EQ(client.post("/v1/acquire", hold_json(R"(</script>\"\\)", "\xe2\x80\xa8")).status, 200);
  EXPECT_NE(next(watcher).find(R"("key":"</script>\"\\","holder":")"), std::string::npos);
}

// One that does not read misses some, and is told how many; nobody waits for it.
TEST(HttpEvents, WhoIsSlowMissesSome) {
  Options options = http_options();
  options.max_locks = 1'000'000;
  options.write_timeout = 0s;  // else it would be cut
  HttpServer server(options);
  HttpClient slow({.port = server.http_port(), .receive_buffer = 4096, .tls = server.tls()});
  ASSERT_EQ(slow.open_stream("/v1/events").status, 200);
  HttpClient client = server.browse();
  const std::string name(250, 'x');
  int occurred = 0;
  const auto cause = [&](int count) {
    std::string requests;
    for (int i = 0; i < count; ++i) {
      const std::string key = name + std::to_string(occurred++);
      requests += client.written("POST", "/v1/acquire", hold_json(key, name, R"("ttl_ms":600000)"));
    }
    ASSERT_TRUE(client.send(requests));
    for (int i = 0; i < count; ++i) ASSERT_EQ(client.read_reply().status, 200);
  };
  // More than the buffers of both systems take.
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(cause(100));
  std::int64_t told = 0;
  std::int64_t missed = 0;
  const auto deadline = HttpClient::Clock::now() + 2 * HttpClient::kPatience;
  while (told + missed < occurred && HttpClient::Clock::now() < deadline) {
    const std::string event = slow.read_event(100ms);
    if (event.starts_with("missed ")) {
      missed += HttpReply{.status = 200, .body = event.substr(event.find('{'))}.number("count");
    } else if (event.starts_with("granted ")) {
      ++told;
    } else {
      ASSERT_EQ(event, kSilence);
      ASSERT_NO_FATAL_FAILURE(cause(1));  // a gap is told before what comes next
    }
  }
  EXPECT_EQ(told + missed, occurred);
  EXPECT_GT(missed, 0);
}

}  // namespace
}  // namespace lockd
