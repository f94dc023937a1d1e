#include "server/client_registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Keeps what was left for its clients.
class NotingHost final : public ClientHost {
 public:
  struct Loss {
    SessionId client;
    LostHold lost;
  };
  struct Disconnect {
    SessionId client;
    OnGone on_gone;
  };

  void leave_loss(SessionId client, LostHold lost) noexcept override {
    losses.push_back({client, std::move(lost)});
  }
  void leave_disconnect(SessionId client, OnGone on_gone) override {
    disconnects.push_back({client, std::move(on_gone)});
  }

  std::vector<Loss> losses;
  std::vector<Disconnect> disconnects;
};

ClientRef ann() {
  return std::make_shared<const ClientIdentity>(ClientIdentity{"ann@build-7:4711", "", "deploy"});
}

class ClientRegistryTest : public testing::Test {
 protected:
  std::vector<SessionId> ids(SessionId after, std::size_t count_max) const {
    std::vector<SessionId> ids;
    for (const ClientStatus& client : registry_.list_some(after, count_max)) {
      ids.push_back(client.id);
    }
    return ids;
  }

  NotingHost host_;
  ClientRegistry registry_;
};

TEST_F(ClientRegistryTest, KnowsWhoIsConnected) {
  const auto before = ClientActivity::Clock::now();
  const auto activity = registry_.enter(17, Protocol::line, "10.0.0.7:51234", host_, 3);
  activity->unsent_bytes = 99;
  registry_.name(17, ann());
  registry_.authenticate(17, "billing");

  const auto status = registry_.status(17);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->id, 17u);
  EXPECT_EQ(status->protocol, Protocol::line);
  EXPECT_EQ(status->peer, "10.0.0.7:51234");
  EXPECT_EQ(status->client->name, "ann@build-7:4711");
  EXPECT_EQ(status->token_name, "billing");
  EXPECT_EQ(status->unsent_bytes, 99u);
  EXPECT_EQ(status->mailbox, 3);
  EXPECT_GE(status->connected, Duration::zero());
  EXPECT_LE(status->connected, ClientActivity::Clock::now() - before);
  EXPECT_FALSE(registry_.status(18));
}

TEST_F(ClientRegistryTest, IdleIsCountedFromWhenItWasHeard) {
  const auto activity = registry_.enter(1, Protocol::http, "", host_);
  activity->heard = ClientActivity::Clock::now() - 5s;
  EXPECT_GE(registry_.status(1)->idle, 5s);
  activity->heard = ClientActivity::Clock::now() + 1h;  // since the clock was read
  EXPECT_EQ(registry_.status(1)->idle, Duration::zero());
}

TEST_F(ClientRegistryTest, WhoHasLeftIsRememberedByWhereItCameFrom) {
  registry_.enter(1, Protocol::line, "10.0.0.7:1", host_);
  registry_.name(1, ann());
  EXPECT_TRUE(registry_.find(1)->is_connected);
  registry_.leave(1);
  registry_.leave(1);

  EXPECT_FALSE(registry_.status(1));
  EXPECT_TRUE(ids(0, 10).empty());
  const auto origin = registry_.find(1);
  ASSERT_TRUE(origin);
  EXPECT_FALSE(origin->is_connected);
  EXPECT_EQ(origin->peer, "10.0.0.7:1");
  EXPECT_EQ(origin->client->note, "deploy");
  EXPECT_FALSE(registry_.find(2)) << "who never came";
}

TEST_F(ClientRegistryTest, OfThoseThatHaveLeftTheLatestAreRemembered) {
  const SessionId last = ClientRegistry::kGoneMax + 2;
  for (SessionId id = 1; id <= last; ++id) {
    registry_.enter(id, Protocol::line, "peer", host_);
    registry_.leave(id);
  }
  EXPECT_FALSE(registry_.find(1));
  EXPECT_FALSE(registry_.find(2));
  EXPECT_TRUE(registry_.find(3));
  EXPECT_TRUE(registry_.find(last));
}

TEST_F(ClientRegistryTest, ListsByIdInPieces) {
  for (const SessionId id : {7u, 2u, 9u, 4u}) registry_.enter(id, Protocol::line, "", host_);
  EXPECT_EQ(ids(0, 3), (std::vector<SessionId>{2, 4, 7}));
  registry_.leave(7);
  EXPECT_EQ(ids(7, 3), (std::vector<SessionId>{9})) << "also from one that has left";
  EXPECT_TRUE(ids(9, 3).empty());
}

TEST_F(ClientRegistryTest, TellsOfLossesWhoHasSaidWhoItIs) {
  registry_.enter(1, Protocol::line, "", host_);
  registry_.enter(2, Protocol::line, "", host_);
  registry_.name(2, ann());
  registry_.lose(1, {.cause = "expired", .key = "a"});
  registry_.lose(2, {.cause = "expired", .key = "b", .position = 5});
  registry_.lose(3, {.cause = "expired", .key = "c"});
  registry_.leave(2);
  registry_.lose(2, {.cause = "expired", .key = "d"});

  ASSERT_EQ(host_.losses.size(), 1u);
  EXPECT_EQ(host_.losses[0].client, 2u);
  EXPECT_EQ(host_.losses[0].lost.key, "b");
  EXPECT_EQ(host_.losses[0].lost.position, 5u);
}

TEST_F(ClientRegistryTest, ADisconnectIsLeftForTheClientsHost) {
  Position gone_at = 0;
  const auto on_gone = [&](Position position) { gone_at = position; };
  EXPECT_FALSE(registry_.disconnect(1, on_gone));
  registry_.enter(1, Protocol::http, "", host_);
  EXPECT_TRUE(registry_.disconnect(1, on_gone));
  ASSERT_EQ(host_.disconnects.size(), 1u);
  EXPECT_EQ(host_.disconnects[0].client, 1u);
  EXPECT_EQ(gone_at, 0u) << "not before it has gone";
  host_.disconnects[0].on_gone(8);
  EXPECT_EQ(gone_at, 8u);
  registry_.leave(1);
  EXPECT_FALSE(registry_.disconnect(1, on_gone));
}

TEST_F(ClientRegistryTest, WhoHasLeftIsNoLongerNamed) {
  registry_.enter(1, Protocol::line, "", host_);
  registry_.leave(1);
  registry_.name(1, ann());
  registry_.authenticate(1, "late");
  EXPECT_EQ(registry_.find(1)->client, nullptr);
}

}  // namespace
}  // namespace lockd
