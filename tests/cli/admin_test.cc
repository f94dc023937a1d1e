// clients, history, and what ends or changes what others have, against servers that answer what the
// specification says: over HTTP and over the line port.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <tuple>
#include <vector>

#include "cli/fake_api.h"
#include "cli/lockctl.h"

namespace lockd {
namespace {

constexpr const char* kHeld =
    R"({"locks":[{"kind":"lock","key":"k","limit":1,"holders":1,"waiters":0,"holds":[)"
    R"({"holder":"tcp:17","client":"ann@build-7:4711","peer":"10.0.0.7:51234","note":"deploy",)"
    R"("token":42,"held_ms":61000,"expires_in_ms":33000}],"queue":[]}]})";

FakeApi::Answer held_by_ann(const std::string& call) {
  if (call.starts_with("GET")) return {"200 OK", kHeld};
  return {"200 OK", R"({"key":"k","released":[{"holder":"tcp:17","token":42}]})"};
}

TEST(Force, ShowsWhoHoldsItAndSendsItsFence) {
  FakeApi api(held_by_ann);
  const Finished done =
      over_both(api, {"release", "--force", "k", "--reason", "it hangs", "--yes"});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.output, "");
  EXPECT_EQ(done.errors,
            "lockctl: 'k' is held by 'tcp:17' (client 'ann@build-7:4711', peer 10.0.0.7:51234, "
            "note 'deploy') for 1m 1s, fence 42\n");
  const Words once{"GET /v1/locks",
                   "POST /v1/admin/release "
                   R"({"key":"k","kind":"lock","reason":"it hangs","token":42})"};
  EXPECT_EQ(api.calls(), (Words{once[0], once[1], once[0], once[1]}));
  EXPECT_EQ(over_both(api, {"release", "--force", "k", "--reason", "r", "-y", "-j"}).output,
            "{\"key\":\"k\",\"released\":[{\"holder\":\"tcp:17\",\"token\":42}]}\n");
}

TEST(Force, AsksOnATerminal) {
  FakeApi api(held_by_ann);
  for (const auto& [typed, status, acts] :
       {std::tuple{"n\n", 1, 0}, std::tuple{"\n", 1, 0}, std::tuple{"y\n", 0, 1}}) {
    const std::size_t before = api.calls().size();
    Lockctl asking(api.over_line({"release", "--force", "k", "--reason", "r"}), kTerminal);
    asking.await_output("release it all the same? [y/N] ");
    asking.type(typed);
    EXPECT_EQ(asking.await_exit(), status) << asking.output();
    EXPECT_EQ(static_cast<int>(api.calls().size() - before), 1 + acts) << typed;
  }
}

TEST(Force, IsRefusedWithoutATerminalAReasonOrSense) {
  FakeApi api(held_by_ann);
  for (const Words& words :
       {Words{"release", "--force", "k", "--reason", "r"},
        Words{"release", "--force", "k", "--yes"},
        Words{"release", "--force", "k", "42.me", "--reason", "r", "--yes"},
        Words{"release", "--force", "k", "--reason", "r", "--yes", "--all", "--fence", "42"},
        Words{"release", "k"}, Words{"disconnect", "17"}, Words{"disconnect", "x", "--reason", "r"},
        Words{"resize", "k", "0"}, Words{"resize", "k"}}) {
    EXPECT_EQ(lockctl(api.over_line(words)).status, 64) << words.back();
  }
  EXPECT_EQ(api.calls(), Words{}) << "nobody was asked";
}

// Of two who force the same lock.
TEST(Force, TheSecondHurtsNobody) {
  FakeApi api([](const std::string& call) -> FakeApi::Answer {
    if (call.starts_with("GET")) return {"200 OK", kHeld};
    return {"409 Conflict", R"({"error":"stale_token","detail":"nobody holds it under that"})"};
  });
  const Finished late = over_both(api, {"release", "--force", "k", "--reason", "r", "--yes"});
  EXPECT_EQ(late.status, 1);
  EXPECT_TRUE(has(late.errors, "lockctl: nobody holds it under that\n")) << late.errors;
  EXPECT_EQ(
      over_both(api, {"release", "--force", "k", "--reason", "r", "--fence", "41", "-y"}).status,
      1);
  FakeApi free([](const std::string&) -> FakeApi::Answer { return {"200 OK", R"({"locks":[]})"}; });
  const Finished nobody = over_both(free, {"release", "--force", "k", "--reason", "r", "--yes"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_EQ(nobody.errors, "lockctl: nobody holds 'k'\n");
}

TEST(Force, OfSeveralHoldersOneIsNamedOrAll) {
  FakeApi api([](const std::string& call) -> FakeApi::Answer {
    if (call.starts_with("POST")) return {"200 OK", "{}"};
    return {"200 OK",
            R"({"locks":[{"kind":"semaphore","key":"k","limit":3,"holders":2,"waiters":0,)"
            R"("holds":[{"holder":"a","token":4,"held_ms":1},{"holder":"b","token":5,)"
            R"("held_ms":1}],"queue":[]}]})"};
  });
  const Finished which = over_both(api, {"release", "--force", "k", "--reason", "r", "--yes"});
  EXPECT_EQ(which.status, 64);
  EXPECT_TRUE(has(which.errors, "2 hold 'k': name one by --fence")) << which.errors;
  EXPECT_EQ(
      over_both(api, {"release", "--force", "k", "--reason", "r", "-y", "--fence", "5"}).status, 0);
  EXPECT_EQ(api.calls().back(),
            "POST /v1/admin/release "
            R"({"key":"k","kind":"semaphore","reason":"r","token":5})");
  EXPECT_EQ(over_both(api, {"release", "--force", "k", "--reason", "r", "-y", "--all"}).status, 0);
  EXPECT_EQ(api.calls().back(),
            "POST /v1/admin/release "
            R"({"key":"k","kind":"semaphore","reason":"r","all":true})");
}

TEST(Admin, DisconnectsAndResizes) {
  FakeApi api([](const std::string&) -> FakeApi::Answer { return {"200 OK", "{}"}; });
  for (const char* client : {"17", "tcp:17"}) {
    EXPECT_EQ(over_both(api, {"disconnect", client, "--reason", "stuck"}).status, 0);
    EXPECT_EQ(api.calls().back(), R"(POST /v1/admin/disconnect {"client_id":17,"reason":"stuck"})");
  }
  FakeApi gone([](const std::string&) -> FakeApi::Answer {
    return {"404 Not Found", R"({"error":"not_found","detail":"no such client"})"};
  });
  EXPECT_EQ(over_both(gone, {"disconnect", "17", "--reason", "stuck"}).status, 1);
  EXPECT_EQ(over_both(api, {"resize", "pool", "5"}).status, 0);
  EXPECT_EQ(api.calls().back(), R"(POST /v1/admin/resize {"key":"pool","limit":5})");
  EXPECT_EQ(over_both(api, {"resize", "pool", "5", "--reason", "load", "-j"}).output, "{}\n");
  EXPECT_EQ(api.calls().back(),
            R"(POST /v1/admin/resize {"key":"pool","limit":5,"reason":"load"})");
  FakeApi denying([](const std::string&) -> FakeApi::Answer {
    return {"403 Forbidden", R"({"error":"denied","detail":"it needs the right admin"})"};
  });
  const Finished denied = over_both(denying, {"resize", "pool", "5"});
  EXPECT_EQ(denied.status, 77);
  EXPECT_EQ(denied.errors, "lockctl: it needs the right admin\n");
}

TEST(Clients, AreATableOrAnObjectALine) {
  FakeApi api([](const std::string&) -> FakeApi::Answer {
    return {"200 OK",
            R"({"clients":[{"client_id":17,"protocol":"line","peer":"10.0.0.7:51234",)"
            R"("client":"ann@build-7:4711","note":"deploy","token_name":"billing",)"
            R"("connected_ms":61000,"idle_ms":900,"holds":2,"places":1,"subscriptions":0,)"
            R"("unsent_bytes":0},{"client_id":18,"protocol":"http","peer":"10.0.0.8:1",)"
            R"("connected_ms":5000,"idle_ms":0,"holds":0,"places":0,"subscriptions":1,)"
            R"("unsent_bytes":9}]})"};
  });
  EXPECT_EQ(over_both(api, {"clients"}).output,
            "ID  PROTOCOL  PEER            NAME              NOTE    TOKEN    CONNECTED   IDLE  "
            "HOLDS  PLACES  SUBSCRIPTIONS  UNSENT\n"
            "17  line      10.0.0.7:51234  ann@build-7:4711  deploy  billing      1m 1s  900ms  "
            "    2       1              0       0\n"
            "18  http      10.0.0.8:1                                                5s     0s  "
            "    0       0              1       9\n");
  const Finished json = over_both(api, {"clients", "ann", "-j"});
  EXPECT_TRUE(json.output.starts_with("{\"client_id\":17,\"protocol\":\"line\",")) << json.output;
  EXPECT_TRUE(has(json.output, "\n{\"client_id\":18,"));
}

constexpr const char* kHistory =
    R"({"events":[{"event":"revoked","at_unix_ms":3000,"kind":"lock","key":"k","holder":"tcp:17",)"
    R"("client":"ann@build-7:4711","peer":"10.0.0.7:1","token":42,"limit":1,"holders":0,)"
    R"("waiters":0,"held_ms":2000,"reason":"it hangs","by":"root"},)"
    R"({"event":"auth_failed","at_unix_ms":2000,"peer":"10.0.0.9:5"},)"
    R"({"event":"started","at_unix_ms":1000}]})";

TEST(History, IsToldOldestFirst) {
  FakeApi api([](const std::string&) -> FakeApi::Answer { return {"200 OK", kHistory}; });
  Lockctl::Launch utc{.environment = {"TZ=UTC"}};
  const Finished told = lockctl(api.over_line({"history", "k"}), utc);
  EXPECT_EQ(told.output,
            "1970-01-01 00:00:01.000  started\n"
            "1970-01-01 00:00:02.000  auth_failed   (peer 10.0.0.9:5)\n"
            "1970-01-01 00:00:03.000  revoked       k  tcp:17  (client 'ann@build-7:4711', peer "
            "10.0.0.7:1)  fence 42  held 2s  it hangs  by root  0/1, 0 waiting\n")
      << told.errors;
  const Finished json = over_both(api, {"history", "-j"});
  EXPECT_TRUE(json.output.starts_with("{\"event\":\"started\",\"at_unix_ms\":1000}\n"));
}

TEST(History, IsAskedForByWhatItIsOf) {
  FakeHttp http([](const FakeRequest&) { return json_reply("200 OK", R"({"events":[]})"); });
  const Words history{"history", "--http", http.address()};
  const auto asked = [&](const Words& words) {
    const Finished none = lockctl(joined(history, words), {.environment = {"TZ=UTC"}});
    EXPECT_EQ(none.errors, "lockctl: the history has nothing of the kind\n");
    return http.requests().back().line;
  };
  EXPECT_EQ(asked({"a b", "--holder", "ana", "--client", "bo", "--client-id", "tcp:17", "--event",
                   "expired", "--limit", "7"}),
            "GET /v1/history?key=a%20b&holder=ana&client=bo&client_id=17&event=expired&limit=7 "
            "HTTP/1.1");
  EXPECT_EQ(asked({"--since", "2026-01-31T14:05"}),
            "GET /v1/history?since_unix_ms=1769868300000 HTTP/1.1");
  EXPECT_EQ(asked({"--since", "2026-01-31"}),
            "GET /v1/history?since_unix_ms=1769817600000 HTTP/1.1");
  const std::string line = asked({"--since", "10m"});
  const long long ago = std::time(nullptr) - std::stoll(line.substr(line.find('=') + 1)) / 1000;
  EXPECT_GE(ago, 600);
  EXPECT_LT(ago, 900);
  for (const Words& wrong :
       {Words{"--since", "soon"}, Words{"--event", "nonsense"}, Words{"--limit", "1001"}}) {
    EXPECT_EQ(lockctl(joined(history, wrong)).status, 64) << wrong.back();
  }
}

}  // namespace
}  // namespace lockd
