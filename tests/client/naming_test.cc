// Who holds it, as the server shows it of this library's clients; and what they hear of it when
// somebody else ends what they hold.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "client/identity.h"
#include "client/test_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

std::string told(Connection& connection, const ApiCall& call) {
  const auto answer = connection.api(call);
  EXPECT_TRUE(answer) << describe(answer);
  EXPECT_EQ(answer->status, 200u) << answer->json;
  return answer->json;
}

bool contains(const std::string& json, const std::string& part) {
  return json.find(part) != std::string::npos;
}

void force(Connection& admin) {
  told(admin, {.method = "POST",
               .path = "/v1/admin/release",
               .json = R"({"key":"k","all":true,"reason":"test"})"});
}

TEST(Naming, IsShownOfConnectionsAndOfWhatTheyHold) {
  const TestServer server;
  Connection onlooker = server.open();
  const std::string self = R"("client":")" + default_name() + R"(")";
  EXPECT_TRUE(contains(told(onlooker, {.method = "GET", .path = "/v1/clients"}), self));

  ClientOptions options = server.client_options();
  options.connect.name = "ann@build-7";
  options.connect.note = "deploy";
  Client client(options);
  const auto lock = client.acquire({.keys = "k", .lease = 600s});
  ASSERT_TRUE(lock) << describe(lock);
  const std::string keys = told(onlooker, {.method = "GET", .path = "/v1/locks"});
  EXPECT_TRUE(contains(keys, R"("client":"ann@build-7")")) << keys;
  EXPECT_TRUE(contains(keys, R"("note":"deploy")")) << keys;
}

TEST(Naming, ALockThatAnAdminEndsIsLostAtOnce) {
  const TestServer server;
  Client client(server.client_options());
  std::atomic<bool> is_told = false;
  const auto lock = client.acquire(
      {.keys = "k", .lease = 3600s, .on_lost = [&](const Status&) { is_told = true; }});
  ASSERT_TRUE(lock) << describe(lock);
  Connection admin = server.open();
  force(admin);
  ASSERT_TRUE(eventually([&] { return is_told.load(); }));
  EXPECT_FALSE(lock->is_held());
  EXPECT_TRUE(lock->lost().stop_requested());
  EXPECT_EQ(lock->loss()->outcome, Outcome::lost);
  EXPECT_EQ(lock->loss()->detail, "an admin has ended it");
  EXPECT_TRUE(client.acquire({.keys = "k"})) << "it is free";
}

TEST(Naming, APlaceWhoseGrantAnAdminEndsIsNotHandedOut) {
  const TestServer server;
  Client client(server.client_options());
  auto place = client.enqueue({.keys = "k", .lease = 3600s});
  ASSERT_TRUE(place) << describe(place);
  ASSERT_TRUE(place->is_granted());
  Connection admin = server.open();
  force(admin);
  // What the server has pushed may be on its way still: then the lock is lost as soon as it comes.
  const auto lock = place->wait(60s);
  if (lock) {
    EXPECT_TRUE(eventually([&] { return !lock->is_held(); }));
    EXPECT_EQ(lock->loss()->detail, "an admin has ended it");
  } else {
    EXPECT_EQ(lock.outcome, Outcome::lost) << describe(lock);
  }
}

// As after any break: the connection that comes next says it, too.
TEST(Naming, IsSaidAgainAfterARestart) {
  const TemporaryDirectory journal;
  Options settings = line_options();
  settings.wal = journal.path();
  std::optional<TestServer> server(settings);
  ClientOptions options = server->client_options();
  options.connect.name = "ann@build-7";
  Client client(options);
  const auto lock = client.acquire({.keys = "k", .lease = 20s});
  ASSERT_TRUE(lock) << describe(lock);
  const auto before = lock->expires_at();
  settings.port = server->port();
  server.reset();
  server.emplace(settings);
  ASSERT_TRUE(eventually([&] { return lock->expires_at() > before; }));
  EXPECT_TRUE(lock->is_held());
  Connection onlooker = server->open();
  const std::string clients = told(onlooker, {.method = "GET", .path = "/v1/clients"});
  EXPECT_TRUE(contains(clients, R"("client":"ann@build-7")")) << clients;
}

}  // namespace
}  // namespace lockd::client
