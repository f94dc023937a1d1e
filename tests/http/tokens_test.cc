// The tokens of one key rise, whatever happens between two grants.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Holds `k` again and again, each time by another way, and looks at the tokens.
class Rising {
 public:
  void expect(std::int64_t token, const char* how) {
    EXPECT_GT(token, last_) << how;
    EXPECT_LT(token, std::int64_t{1} << 53);
    last_ = token;
  }
  std::int64_t last() const { return last_; }

 private:
  std::int64_t last_ = 0;
};

void by_http(HttpServer& server, Rising& rising) {
  HttpClient client = server.browse();
  rising.expect(client.post("/v1/acquire", hold_json("k", "a")).number("token"), "HTTP");
  EXPECT_EQ(client.post("/v1/release", hold_json("k", "a", rising.last())).status, 200);
}

void by_line(HttpServer& server, Rising& rising) {
  LineClient line = server.connect();
  const std::string token = token_of(line.ask(request("l", "k", "60")));
  rising.expect(std::stoll(token.substr(0, 16), nullptr, 16), "line");
  EXPECT_EQ(line.ask(request("r", "k", token)), "ok");
}

void by_expiry(HttpServer& server, Rising& rising) {
  HttpClient client = server.browse();
  const std::string lapses = hold_json("k", "a", R"("ttl_ms":1)");
  rising.expect(client.post("/v1/acquire", lapses).number("token"), "a lease that lapses");
  const std::string waits = hold_json("k", "b", R"("wait_ms":60000)");
  rising.expect(client.post("/v1/acquire", waits).number("token"), "after a lease that lapsed");
  EXPECT_EQ(client.post("/v1/release", hold_json("k", "b", rising.last())).status, 200);
}

void by_disconnect(HttpServer& server, Rising& rising) {
  LineClient line = server.connect();
  const std::string token = token_of(line.ask(request("l", "k", "60")));
  rising.expect(std::stoll(token.substr(0, 16), nullptr, 16), "one that will leave");
  line.reset();
  HttpClient client = server.browse();
  const std::string waits = hold_json("k", "b", R"("wait_ms":60000)");
  rising.expect(client.post("/v1/acquire", waits).number("token"), "after one that left");
  EXPECT_EQ(client.post("/v1/release", hold_json("k", "b", rising.last())).status, 200);
}

// Until nothing is known of `k` any more; the fence is still as high.
void await_forgotten(HttpServer& server, const Rising& rising) {
  HttpClient client = server.browse();
  const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
  while (client.get("/v1/locks?idle=true").body != "{\"locks\":[]}\n") {
    ASSERT_LT(HttpClient::Clock::now(), deadline);
    std::this_thread::sleep_for(2ms);
  }
  const HttpReply fence = client.get("/v1/fence?key=k");
  EXPECT_EQ(shown(fence), R"(200 {"key":"k","held":false,"token":<token>})");
  EXPECT_GE(fence.number("token"), rising.last());
}

void by_all(HttpServer& server, Rising& rising) {
  for (int i = 0; i < 3; ++i) {
    by_http(server, rising);
    by_line(server, rising);
    by_expiry(server, rising);
    by_disconnect(server, rising);
  }
}

Options forgetful_options() {
  Options options = http_options();
  options.gc_interval = 10ms;
  options.gc_max_idle = 0ms;
  return options;
}

TEST(HttpTokens, RiseOverEveryWayToTakeAndLose) {
  HttpServer server(forgetful_options());
  Rising rising;
  by_all(server, rising);
  ASSERT_NO_FATAL_FAILURE(await_forgotten(server, rising));
  by_all(server, rising);
}

TEST(HttpTokens, StartAtOneInANewJournalAndRiseOverRestarts) {
  const TemporaryDirectory journal;
  Options options = forgetful_options();
  options.wal = journal.path();
  Rising rising;
  std::optional<std::int64_t> first;
  for (int run = 0; run < 4; ++run) {
    HttpServer server(options);
    HttpClient client = server.browse();
    if (run > 0) {
      EXPECT_GE(client.get("/v1/fence?key=k").number("token"), rising.last());
    }
    by_http(server, rising);
    if (!first) first = rising.last();
    by_all(server, rising);
    if (run % 2 == 0) {
      ASSERT_NO_FATAL_FAILURE(await_forgotten(server, rising));
    }
  }
  EXPECT_EQ(first, 1);
}

}  // namespace
}  // namespace lockd
