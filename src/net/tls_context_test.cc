#include "net/tls_context.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace lockd {
namespace {

// OpenSSL would wait for the FIFO's writer, and the server with it.
TEST(TlsContextTest, AFifoIsRefused) {
  const std::string fifo = testing::TempDir() + "tls_context_test.fifo";
  std::filesystem::remove(fifo);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string error;
  for (const TlsFiles& files : {TlsFiles{.certificate = fifo, .key = "none"},
                                {.certificate = "none", .key = fifo},
                                {.certificate = "none", .key = "none", .client_ca = fifo}}) {
    EXPECT_EQ(TlsContext::load(files, error), nullptr);
    EXPECT_NE(error.find("cannot use " + fifo + " for TLS: not a regular file; it takes"),
              std::string::npos)
        << error;
  }
  std::filesystem::remove(fifo);
}

}  // namespace
}  // namespace lockd
