// The commands that use the HTTP API, against a server that answers what the specification says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/fake_http.h"
#include "cli/lockctl.h"

namespace lockd {
namespace {

Finished over(const FakeHttp& http, const Words& words) {
  return lockctl(with_options(words, {"--http", http.address()}));
}

TEST(Reservations, AcquirePrintsTheHandle) {
  FakeHttp http([](const FakeRequest&) {
    return json_reply("200 OK", R"({"key":"k","holder":"h","token":42,"expires_at_unix_ms":1})");
  });
  const Finished plain = over(http, {"acquire", "k", "--ttl", "1.5", "-w", "2", "--holder", "me"});
  EXPECT_EQ(plain.status, 0) << plain.errors;
  EXPECT_EQ(plain.output, "42.me\n");
  EXPECT_EQ(over(http, {"acquire", "k", "-n", "--json", "--holder", "h"}).output,
            "{\"key\":\"k\",\"holder\":\"h\",\"token\":42,\"expires_at_unix_ms\":1,"
            "\"handle\":\"42.h\"}\n");
  const auto requests = http.requests();
  EXPECT_EQ(requests[0].line, "POST /v1/acquire HTTP/1.1");
  EXPECT_EQ(requests[0].body, R"({"key":"k","holder":"me","ttl_ms":1500,"wait_ms":2000})");
  over(http, {"acquire", "k", "--semaphore", "3", "--holder", "me", "-n"});
  EXPECT_EQ(http.requests()[2].line, "POST /v1/semaphores/acquire HTTP/1.1");
  EXPECT_EQ(http.requests()[2].body, R"({"key":"k","holder":"me","limit":3,"wait_ms":0})");
}

// What a call of `acquire` without a name says of its holder.
std::string holder_in(const std::string& body) {
  const std::string start = "\"holder\":\"";
  const std::size_t at = body.find(start) + start.size();
  return body.substr(at, body.find('"', at) - at);
}

TEST(Reservations, EveryCallIsAHolderOfItsOwnUnlessItIsNamed) {
  FakeHttp http([](const FakeRequest&) { return json_reply("200 OK", R"({"token":7})"); });
  const Finished first = over(http, {"acquire", "k"});
  const Finished second = over(http, {"acquire", "k"});
  const std::string holder = holder_in(http.requests()[0].body);
  EXPECT_EQ(first.output, "7." + holder + "\n");
  EXPECT_EQ(holder.find(' '), std::string::npos);
  EXPECT_NE(holder.find('@'), std::string::npos) << "people see whose it is: " << holder;
  EXPECT_NE(first.output, second.output);
  const Finished spaced = over(http, {"acquire", "k", "--holder", "two words"});
  EXPECT_EQ(spaced.status, 64);
  EXPECT_EQ(spaced.errors, "lockctl: --holder: no spaces, so that the handle is one word\n");
}

TEST(Reservations, AHandleIsAllThatIsNeeded) {
  FakeHttp http([](const FakeRequest&) {
    return json_reply("200 OK", R"({"key":"k","holder":"a.b","token":42})");
  });
  EXPECT_EQ(over(http, {"renew", "k", "42.a.b", "--json"}).output,
            "{\"key\":\"k\",\"holder\":\"a.b\",\"token\":42,\"handle\":\"42.a.b\"}\n");
  EXPECT_EQ(over(http, {"release", "k", "42.a.b"}).status, 0);
  EXPECT_EQ(http.requests()[1].body, R"({"key":"k","holder":"a.b","token":42})");
  EXPECT_EQ(over(http, {"release", "k", "42.a.b", "--holder", "other"}).status, 64);
  const Finished bare = over(http, {"release", "k", "42"});
  EXPECT_EQ(bare.status, 64);
  EXPECT_NE(bare.errors.find("give the handle that acquire printed"), std::string::npos);
  for (const char* broken : {"42.", ".me", "x.me", "0.me", "42me"}) {
    EXPECT_EQ(over(http, {"release", "k", broken}).status, 64) << broken;
  }
}

TEST(Reservations, TheWaitHasNoEndUnlessItIsSaid) {
  FakeHttp http([](const FakeRequest&) { return json_reply("200 OK", R"({"token":1})"); });
  over(http, {"acquire", "k"});
  EXPECT_NE(http.requests()[0].body.find("\"wait_ms\":9223372036000"), std::string::npos)
      << http.requests()[0].body;
}

TEST(Reservations, RefusalsHaveTheirCodes) {
  const struct {
    const char* status;
    const char* body;
    int code;
  } cases[] = {
      {"409 Conflict", R"({"error":"held","detail":"it is held","held_by":{"holder":"bo"}})", 1},
      {"409 Conflict", R"({"error":"wait_timeout","detail":"d"})", 1},
      {"409 Conflict", R"({"error":"limit_mismatch","detail":"d"})", 65},
      {"400 Bad Request", R"({"error":"bad_request","detail":"d"})", 65},
      {"401 Unauthorized", R"({"error":"unauthorized","detail":"d"})", 77},
      {"403 Forbidden", R"({"error":"protected_mode","detail":"d"})", 77},
      {"429 Too Many", R"({"error":"max_locks","detail":"d"})", 75},
      {"503 No", R"({"error":"draining","detail":"d"})", 75},
      {"500 Oops", "<html>", 76},
      {"200 OK", "not json", 76},
  };
  for (const auto& answer : cases) {
    FakeHttp http([&](const FakeRequest&) { return json_reply(answer.status, answer.body); });
    const Finished finished = over(http, {"acquire", "k", "-n"});
    EXPECT_EQ(finished.status, answer.code) << answer.body << finished.errors;
    EXPECT_TRUE(finished.errors.starts_with("lockctl: ")) << finished.errors;
  }
  FakeHttp held([](const FakeRequest&) {
    return json_reply("409 Conflict",
                      R"({"error":"held","detail":"d","held_by":{"holder":"bo\u001b["}})");
  });
  const Finished finished = over(held, {"acquire", "k", "-n", "-E", "9"});
  EXPECT_EQ(finished.status, 9);
  EXPECT_EQ(finished.errors, "lockctl: d (holder 'bo?[')\n");
  // For programs, what the server says is on standard output.
  const Finished json = over(held, {"acquire", "k", "-n", "-j", "-E", "9"});
  EXPECT_EQ(json.status, 9);
  EXPECT_EQ(json.output, R"({"error":"held","detail":"d","held_by":{"holder":"bo\u001b["}})"
                         "\n");
  EXPECT_EQ(json.errors, finished.errors);
  for (const char* call : {"renew", "release"}) {
    FakeHttp lost([](const FakeRequest&) {
      return json_reply("409 Conflict", R"({"error":"stale_token","detail":"d"})");
    });
    EXPECT_EQ(over(lost, {call, "k", "7.me"}).status, 1) << call;
    EXPECT_EQ(over(lost, {call, "k", "7.me"}).output, "") << call;
    EXPECT_EQ(over(lost, {call, "k", "7.me", "-j"}).output,
              "{\"error\":\"stale_token\",\"detail\":\"d\"}\n")
        << call;
  }
}

TEST(Looking, ListSaysThatNothingIsHeld) {
  FakeHttp http([](const FakeRequest&) { return json_reply("200 OK", R"({"locks":[]})"); });
  const Finished none = over(http, {"list"});
  EXPECT_EQ(none.status, 0);
  EXPECT_EQ(none.output, "");
  EXPECT_EQ(none.errors, "lockctl: nothing is held\n");
  EXPECT_EQ(over(http, {"list", "a/"}).errors, "lockctl: no key that begins with 'a/' is held\n");
  const Finished json = over(http, {"list", "--json"});
  EXPECT_EQ(json.output + json.errors, "");
}

TEST(Looking, DescribeShowsTheQueue) {
  FakeHttp http([](const FakeRequest&) {
    return json_reply(
        "200 OK",
        R"({"locks":[{"kind":"lock","key":"k","limit":1,"holders":1,"waiters":2,)"
        R"("holds":[{"holder":"ana","token":4,"held_ms":1000,"expires_in_ms":32000}],)"
        R"("queue":[{"holder":"bo","waited_ms":900},{"holder":"cy","waited_ms":100}]}]})");
  });
  EXPECT_EQ(over(http, {"describe", "k"}).output,
            "k  lock, 1 holder, 2 waiting\n"
            "\n"
            "HOLDER  FENCE  HELD  EXPIRES\n"
            "ana         4    1s      32s\n"
            "\n"
            "#  WAITER  WAITED\n"
            "1  bo       900ms\n"
            "2  cy       100ms\n");
  EXPECT_EQ(over(http, {"describe", "other"}).status, 1);
}

TEST(Looking, WatchPrintsEventsAsTheyCome) {
  FakeHttp http([](const FakeRequest&) {
    return std::string(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: ping\n\n"
        "event: granted\ndata: {\"at_unix_ms\":1000,\"kind\":\"lock\",\"key\":\"k\",\"holder\":"
        "\"ana\",\"token\":7,\"limit\":1,\"holders\":1,\"waiters\":0,\"waited_ms\":1500}\n\n"
        "event: missed\ndata: {}\n\n");
  });
  const Finished plain = over(http, {"watch", "k"});
  EXPECT_EQ(plain.status, 69) << "the stream has ended";
  EXPECT_NE(plain.output.find("granted       k  ana  fence 7  waited 1.5s  1/1, 0 waiting\n"),
            std::string::npos)
      << plain.output;
  const Finished json = over(http, {"watch", "--json"});
  EXPECT_NE(json.output.find("\"waited_ms\":1500,\"event\":\"granted\"}\n"), std::string::npos)
      << json.output;
  EXPECT_NE(http.requests()[0].line.find("GET /v1/events?prefix=k "), std::string::npos);
  FakeHttp refusing(
      [](const FakeRequest&) { return json_reply("401 No", R"({"error":"unauthorized"})"); });
  EXPECT_EQ(over(refusing, {"watch"}).status, 77);
}

}  // namespace
}  // namespace lockd
