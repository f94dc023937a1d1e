#include "client/endpoint.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace lockd::client {
namespace {

// Until the end of the scope no thread can be made: none gets a stack that large.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 60), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
    ::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(Endpoint, WhoCannotBeLookedUpForLackOfAThreadCannotBeReached) {
  const NoThreads none;
  const auto until = BootClock::now() + std::chrono::seconds(60);
  const auto found = resolve({"localhost", 1}, until, {});
  EXPECT_EQ(found.outcome, Outcome::unreachable);
  EXPECT_TRUE(resolve({"127.0.0.1", 1}, until, {})) << "needs none";
}

TEST(Endpoint, FilesThatAreNotRegularAreRefused) {
  const std::string fifo = testing::TempDir() + "endpoint_test.fifo";
  std::filesystem::remove(fifo);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ConnectOptions options;
  options.auth_token_file = fifo;
  EXPECT_EQ(Endpoint::make({"127.0.0.1", 1}, options).detail,
            "no auth token can be read from " + fifo + ": not a regular file");
  for (const TlsOptions& tls : {TlsOptions{.ca_file = fifo},
                                {.certificate = fifo, .key = "none"},
                                {.certificate = "none", .key = fifo}}) {
    const auto made = Endpoint::make({"127.0.0.1", 1}, {.tls = tls});
    EXPECT_EQ(made.outcome, Outcome::invalid);
    EXPECT_EQ(made.detail, "cannot use " + fifo + " for TLS: not a regular file");
  }
  std::filesystem::remove(fifo);
}

}  // namespace
}  // namespace lockd::client
