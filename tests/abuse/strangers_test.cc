// Strangers: connections that say nothing, or a byte now and then, or begin one
// handshake after the other. See also load/acceptors_test.cc and load/descriptors_test.cc.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/eventually.h"
#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/http_client.h"
#include "support/server_process.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// More than a server has for itself and for honest clients.
constexpr std::size_t kOtherDescriptors = 64;

std::vector<std::string> guarded(const std::vector<std::string>& more) {
  std::vector<std::string> flags{"--threads",  "2",           "--auth-token",
                                 kHonestToken, "--http-addr", "127.0.0.1:0"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// A byte from each, whoever is still connected.
void trickle(Swarm& strangers, std::chrono::milliseconds time) {
  for (const auto end = SteadyClock::now() + time; SteadyClock::now() < end;) {
    for (std::size_t i = 0; i < strangers.size(); ++i) strangers.offer(i, "x");
    strangers.discard(20ms);
  }
}

// So many come and trickle; of those who have proved nothing there are never more than `cap`.
void crowd_with_strangers(const ServerProcess& server, std::size_t strangers_max, std::size_t cap) {
  Swarm strangers(server.port());
  {
    const HonestClients honest(server, {.attack = "a crowd that does not authenticate",
                                        .token = kHonestToken,
                                        .reads_metrics = true,
                                        .comes_anew = true});
    while (strangers.size() < strangers_max) {
      ASSERT_TRUE(strangers.connect(20));
      for (std::size_t i = strangers.size() - 20; i < strangers.size(); ++i) {
        strangers.offer(i, "auth\n\n");
      }
      strangers.discard(1ms);
    }
    trickle(strangers, scaled(2000ms));
    EXPECT_LE(metric(server, "lockd_connections_unauthenticated"), static_cast<double>(cap));
    EXPECT_TRUE(eventually([&] { return server.descriptors() <= cap + kOtherDescriptors; }, 5s));
  }
  EXPECT_GE(metric(server, R"(lockd_unauthenticated_closed_total{reason="crowd"})"),
            static_cast<double>(strangers_max - cap));
}

TEST(AbuseByStrangers, AFewMayBeWithoutProof) {
  const ServerProcess server(guarded({"--max-unauthenticated", "50"}));
  crowd_with_strangers(server, 400, 50);
}

TEST(AbuseByStrangers, AThousandMayBeWithoutProofByDefault) {
  const std::size_t strangers = connections_possible(2000);
  if (strangers < 2000) GTEST_SKIP() << "too few descriptors";
  const ServerProcess server(guarded({}));
  crowd_with_strangers(server, strangers, 1000);
}

// Strangers begin a request and trickle on. The server replies `reply` to each after a second, not
// before, and closes it.
void trickle_to_end(const std::vector<std::string>& flags, const HonestClients::Setup& honest_ones,
                    std::string_view begun, std::string_view reply) {
  const ServerProcess server(flags);
  Swarm strangers(server.port());
  const HonestClients honest(server, honest_ones);
  const auto began = SteadyClock::now();
  ASSERT_TRUE(strangers.connect(300));
  for (std::size_t i = 0; i < strangers.size(); ++i) strangers.offer(i, begun);
  std::size_t replies = 0;
  for (const auto deadline = began + 20s; strangers.open() > 0 && SteadyClock::now() < deadline;) {
    for (std::size_t i = 0; i < strangers.size(); ++i) strangers.offer(i, "x");
    while (const auto arrival = strangers.next(5ms)) {
      ASSERT_GE(SteadyClock::now(), began + 1s);
      if (arrival->line == reply) ++replies;
    }
  }
  EXPECT_EQ(strangers.open(), 0U);
  EXPECT_GT(replies, strangers.size() / 2);  // some clients see the close as a reset
}

TEST(AbuseByStrangers, ATrickleWithoutProofEndsAtItsDeadline) {
  trickle_to_end(guarded({"--auth-timeout", "1"}),
                 {.attack = "a trickle that does not authenticate",
                  .token = kHonestToken,
                  .reads_metrics = true,
                  .comes_anew = true},
                 "auth\n\n", "error_auth");
}

TEST(AbuseByStrangers, ATrickleWithoutATokenEndsAtTheReadTimeout) {
  trickle_to_end({"--threads", "2", "--read-timeout", "1"},
                 {.attack = "a trickle", .comes_anew = true}, "signal\na\n", "error");
}

// What a client says first over TLS.
std::string hello() {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl);
  SSL_do_handshake(ssl);
  std::array<char, 4096> bytes;
  const int size = BIO_read(SSL_get_wbio(ssl), bytes.data(), bytes.size());
  SSL_free(ssl);
  SSL_CTX_free(context);
  return {bytes.data(), static_cast<std::size_t>(size)};
}

// Each costs the server a signature, and the client nothing.
TEST(AbuseByStrangers, HelloAfterHello) {
  constexpr std::size_t kAtOnce = 50;
  const TestAuthority& authority = test_authority();
  const ServerProcess server({"--threads", "2", "--tls-cert", authority.certificate("server"),
                              "--tls-key", authority.key("server")});
  const std::string first = hello();
  std::size_t hellos = 0;
  const auto time = scaled(4000ms);
  {
    const HonestClients honest(server,
                               {.attack = "hello after hello", .comes_anew = true, .tls = true});
    for (const auto end = SteadyClock::now() + time; SteadyClock::now() < end && hellos < 20'000;) {
      Swarm strangers(server.port());
      ASSERT_TRUE(strangers.connect(kAtOnce));
      for (std::size_t i = 0; i < kAtOnce; ++i) strangers.offer(i, first);
      hellos += kAtOnce;
      strangers.discard(5ms);
    }
  }
  std::printf("%zu hellos in %lld ms\n", hellos, static_cast<long long>(time.count()));
}

// By default some descriptors stay, for the journal and whatever else must be opened.
TEST(AbuseByStrangers, StrangersDoNotTakeEveryDescriptor) {
  constexpr std::size_t kDescriptors = 200;
  const ServerProcess server({"--threads", "2"}, {.soft = kDescriptors, .hard = kDescriptors});
  Swarm strangers(server.port());
  const HonestClients honest(server, {.attack = "a crowd of strangers"});
  ASSERT_TRUE(strangers.connect(2 * kDescriptors));
  std::size_t closed = 0;
  while (strangers.next(500ms)) ++closed;
  EXPECT_GE(closed, kDescriptors);
  EXPECT_LE(server.descriptors(), kDescriptors - 40);
}

}  // namespace
}  // namespace lockd
