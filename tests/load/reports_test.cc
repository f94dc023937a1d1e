// A report of many keys is told piece by piece: it takes no more memory than a few pieces, however
// slowly it is read, and nobody else waits for it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "base/testing/test_size.h"
#include "load/honest_clients.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Of each of the four sorts that the statistics have; as text, some 20 MB in all.
constexpr std::size_t kKeysOfASort = 50'000;
constexpr std::size_t kKeptKib = 6 * 1024;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string_view array_of(std::string_view json, std::string_view name) {
  const std::size_t from = json.find("\"" + std::string(name) + "\":[");
  return from == json.npos ? "" : json.substr(from, json.find(']', from) - from);
}

void expect_complete(std::string_view json) {
  for (const char* name : {"locks", "semaphores", "idle_locks", "idle_semaphores"}) {
    const std::size_t count = count_of(array_of(json, name), "\"key\":");
    EXPECT_GE(count, kKeysOfASort) << name;
    EXPECT_LE(count, kKeysOfASort + 2) << name;  // and those of the honest clients
  }
  EXPECT_TRUE(json.starts_with("{\"connections\":"));
  if (json.ends_with('\n')) json.remove_suffix(1);  // over HTTP
  EXPECT_TRUE(json.ends_with("}")) << json.substr(json.size() - 50);
}

class LargeReport : public testing::Test {
 protected:
  // One server for all: to take so many takes a while.
  static void SetUpTestSuite() {
    server = new ServerProcess({"--threads", "1", "--max-locks", "300000", "--gc-max-idle", "1000",
                                "--http-addr", "127.0.0.1:0"});
    holder = new LineClient(server->connect());
    for (std::size_t i = 0; i < kKeysOfASort; i += 1'000) take(i, i + 1'000);
  }
  static void TearDownTestSuite() {
    delete holder;
    delete server;
  }

  // Held and idle ones, locks and semaphores.
  static void take(std::size_t from, std::size_t until) {
    std::string held;
    std::string released;
    for (std::size_t i = from; i < until; ++i) {
      const std::string key = std::to_string(i) + std::string(40, 'k');
      held += request("l", "h" + key, "0 1000") + request("sl", "h" + key, "0 2 1000");
      released += request("l", "i" + key, "0 1000") + request("sl", "i" + key, "0 2 1000");
    }
    holder->send(held);
    for (const std::string& reply : holder->read_lines(2 * (until - from))) {
      ASSERT_TRUE(reply.starts_with("ok ")) << reply;
    }
    LineClient passer_by = server->connect();  // who leaves them behind
    passer_by.send(released);
    for (const std::string& reply : passer_by.read_lines(2 * (until - from))) {
      ASSERT_TRUE(reply.starts_with("ok ")) << reply;
    }
  }

  void expect_little_kept() const {
    const std::size_t more_kib = server->memory_max_kib() - kept_kib_;
    std::printf("%zu keys: %zu KiB kept for the report\n", 4 * kKeysOfASort, more_kib);
    if (!kSanitized) {
      EXPECT_LE(more_kib, kKeptKib);
    }
  }

  static inline ServerProcess* server = nullptr;
  static inline LineClient* holder = nullptr;  // of half of them
  const std::size_t kept_kib_ = server->memory_max_kib();
};

TEST_F(LargeReport, OverALineIsTakenPieceByPiece) {
  const HonestClients honest(*server, {.attack = "a large report"});
  LineClient reader = server->connect(4096);
  reader.send(request("stats", "", "") + request("ping", "", ""));
  honest.await_rounds(20);
  std::this_thread::sleep_for(200ms);
  std::string all;
  while (all.size() < 1'000'000) all += reader.read_some();  // a part, slowly
  honest.await_rounds(20);
  expect_little_kept();
  while (!all.ends_with("}\nok\n")) {
    const std::string more = reader.read_some();
    ASSERT_FALSE(more.empty());
    all += more;
  }
  ASSERT_TRUE(all.starts_with("ok "));
  expect_complete(std::string_view(all).substr(3, all.size() - 7));
  expect_little_kept();
}

TEST_F(LargeReport, OverHttpComesInChunks) {
  const HonestClients honest(*server, {.attack = "a large report"});
  HttpClient reader({.port = server->http_port(), .receive_buffer = 4096});
  reader.send(reader.written("GET", "/v1/stats") + reader.written("GET", "/livez"));
  honest.await_rounds(20);
  std::this_thread::sleep_for(200ms);
  const HttpReply reply = reader.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Transfer-Encoding"), "chunked");
  expect_complete(reply.body);
  EXPECT_EQ(reader.read_reply().status, 200);
  expect_little_kept();
}

TEST_F(LargeReport, OverOldHttpEndsWithTheConnection) {
  LineClient reader(server->http_port());
  reader.send("GET /v1/stats HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  std::string all;
  for (std::string more; !(more = reader.read_some()).empty();) all += more;
  EXPECT_NE(all.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(all.find("Transfer-Encoding"), std::string::npos);
  expect_complete(std::string_view(all).substr(all.find("\r\n\r\n") + 4));
}

TEST_F(LargeReport, EndsWhenItsReaderLeaves) {
  const HonestClients honest(*server, {.attack = "a large report"});
  for (int i = 0; i < 20; ++i) {
    LineClient reader = server->connect(4096);
    reader.send(request("stats", "", ""));
    reader.read_some();
  }
  EXPECT_NE(await_stats(*holder, "{\"connections\":3,").find("\"locks\""), std::string::npos);
  honest.await_rounds(20);
  expect_little_kept();
}

}  // namespace
}  // namespace lockd
