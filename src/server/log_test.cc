#include "server/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "base/descriptor.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// The log of this process, which goes to `descriptor` instead of stderr for as long as this lives.
class Redirected {
 public:
  explicit Redirected(int descriptor) : stderr_(::dup(STDERR_FILENO)) {
    static const bool is_set_up = (set_up_log(LogLevel::trace, LogFormat::text), true);
    EXPECT_TRUE(is_set_up);
    ::dup2(descriptor, STDERR_FILENO);
  }
  ~Redirected() { ::dup2(stderr_.get(), STDERR_FILENO); }

 private:
  const Descriptor stderr_;
};

// What is in the file once `last` is.
std::string await(const Descriptor& file, std::string_view last) {
  std::string text;
  for (int tries = 0; tries < 1000 && text.find(last) == std::string::npos; ++tries) {
    std::this_thread::sleep_for(10ms);
    text.resize(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)));
    const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  return text;
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

PeerEvent knock(LogLevel::info, "knock");
PeerEvent murmur(LogLevel::info, "murmur");

TEST(Log, OfWhatPeersCauseAFewASecondAndThenHowManyMore) {
  const Descriptor file(::memfd_create("log", 0));
  const Redirected redirected(file.get());
  const PeerEvent::Clock::time_point now{};
  for (int i = 0; i < 1000; ++i) {
    if (knock.admits(now + 10s)) knock.log({{"number", i}});
  }
  EXPECT_TRUE(murmur.admits(now + 10s)) << "each kind by itself";
  EXPECT_FALSE(knock.admits(now + 11s - 1ns));
  EXPECT_TRUE(knock.admits(now + 11s));
  knock.log({{"number", 1001}});
  const std::string text = await(file, "1001");
  EXPECT_EQ(count(text, "knock number="), 6U) << text;
  EXPECT_EQ(count(text, "knock and_more=996"), 1U) << text;
}

TEST(Log, WhatWasLeftOutIsToldThoughNoneFollows) {
  const Descriptor file(::memfd_create("log", 0));
  const Redirected redirected(file.get());
  const PeerEvent::Clock::time_point now{};
  for (int i = 0; i < 7; ++i) {
    if (murmur.admits(now + 20s)) murmur.log({});
  }
  PeerEvent::log_left_out(now + 21s - 1ns);
  PeerEvent::log_left_out(now + 21s);
  PeerEvent::log_left_out(now + 30s);
  log_event(LogLevel::info, "the end");
  const std::string text = await(file, "the end");
  EXPECT_EQ(count(text, "murmur and_more=2"), 1U) << text;
  EXPECT_EQ(count(text, "and_more"), 1U) << text;
}

TEST(Log, APipeThatNobodyReadsHoldsUpNobody) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Descriptor reader(ends[0]);
  const Descriptor writer(ends[1]);
  const std::uint64_t before = log_lines_dropped();
  {
    const Redirected redirected(writer.get());
    for (int i = 0; i < 10'000; ++i) log_event(LogLevel::info, std::string(100, 'x'));
    EXPECT_GT(log_lines_dropped(), before);
    reader.reset();  // what waits is dropped by the writes that fail
    const Descriptor file(::memfd_create("log", 0));
    ::dup2(file.get(), STDERR_FILENO);
    log_event(LogLevel::info, "written");
    EXPECT_NE(await(file, "written").find("written"), std::string::npos);
  }
}

// They would rewrite the line on a terminal, or show it in another order.
TEST(Log, CharactersThatAPersonCannotSeeAreEscaped) {
  const Descriptor file(::memfd_create("log", 0));
  const Redirected redirected(file.get());
  log_event(
      LogLevel::info, "name",
      {{"key", "a\u0080b\u009fc\u061cd\u200ee\u200ff\u2028g\u2029h\u202ai\u202ej\u2066k\u2069l"}});
  log_event(LogLevel::info, "plain",
            {{"key", "\u00a0\u00e9\u200d\u2027\u202f\u2065\u206a\U0001f512"}});
  log_event(LogLevel::info, "cut short", {{"key", "\xe2\x80"}});
  const std::string text = await(file, "cut short");
  EXPECT_NE(
      text.find(
          R"(name key="a\u0080b\u009fc\u061cd\u200ee\u200ff\u2028g\u2029h\u202ai\u202ej\u2066k\u2069l")"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("plain key=\"\u00a0\u00e9\u200d\u2027\u202f\u2065\u206a\U0001f512\""),
            std::string::npos)
      << text;
}

// How many lines of debug and trace were dropped, as the log says.
std::uint64_t reported_drops(std::string_view text) {
  constexpr std::string_view kReport = "warning log lines dropped debug_and_trace=";
  std::uint64_t all = 0;
  for (std::size_t at = 0; (at = text.find(kReport, at)) != std::string_view::npos;) {
    at += kReport.size();
    all += std::stoull(std::string(text.substr(at)));
  }
  return all;
}

// Lines of debug and trace give way to those that matter, and the log says how many did.
TEST(Log, AFloodOfDebugDropsNothingElse) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const Descriptor reader(ends[0]);
  const Descriptor full(ends[1]);
  while (::write(full.get(), "x", 1) == 1) continue;
  const Descriptor file(::memfd_create("log", 0));
  const Redirected redirected(full.get());
  const std::uint64_t before = log_lines_dropped();
  for (int i = 0; i < 5000; ++i) log_event(LogLevel::debug, "request");
  for (int i = 0; i < 1000; ++i) log_event(LogLevel::warn, "hold revoked", {{"number", i}});
  for (int i = 0; i < 5000; ++i) log_event(LogLevel::trace, "batch");
  const std::uint64_t dropped = log_lines_dropped() - before;
  EXPECT_GT(dropped, 8000U);

  ::dup2(file.get(), STDERR_FILENO);
  std::string text;
  for (int tries = 0; tries < 1000 && reported_drops(text) < dropped; ++tries) {
    text = await(file, "batch");
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(reported_drops(text), dropped);
  EXPECT_LE(count(text, "log lines dropped"), 3U) << "once a second";
  EXPECT_EQ(count(text, "hold revoked number="), 1000U);
  EXPECT_LT(text.find("hold revoked number=0\n"), text.find("hold revoked number=999\n"));
  EXPECT_LT(text.find("hold revoked number=999\n"), text.find("batch")) << "in their order";
}

}  // namespace
}  // namespace lockd
