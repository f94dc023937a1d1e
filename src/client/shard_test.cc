#include <gtest/gtest.h>

#include "lockd/client/client.h"

namespace lockd::client {
namespace {

// The values that all clients are held to.
TEST(ShardOf, IsWhatOtherClientsCompute) {
  EXPECT_EQ(shard_of("my-key", 3), 2u);
  EXPECT_EQ(shard_of("orders/42", 5), 1u);
  EXPECT_EQ(shard_of("my-job", 4), 0u);
  EXPECT_EQ(shard_of("clé-日本", 3), 2u);
}

TEST(ShardOf, PicksTheServer) {
  const Client client({.servers = {{"a"}, {"b"}, {"c"}}});
  EXPECT_EQ(client.server_of("my-key").host, "c");
  EXPECT_EQ(client.server_of("clé-日本").host, "c");
}

TEST(Client, NeedsAServer) { EXPECT_THROW(Client({.servers = {}}), std::invalid_argument); }

}  // namespace
}  // namespace lockd::client
