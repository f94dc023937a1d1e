#include "client/endpoint.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>

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

}  // namespace
}  // namespace lockd::client
