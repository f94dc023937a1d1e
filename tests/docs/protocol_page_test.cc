// The tables of docs/protocol.md say what the code does. session_page_test executes the sessions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"
#include "docs/page.h"
#include "protocol/line/line_reply.h"
#include "protocol/line/line_request.h"
#include "pubsub/testing/subscriptions_model.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

constexpr const char* kPath = "docs/protocol.md";

const std::string& page() {
  static const std::string text = [] {
    std::ifstream stream(std::string(LOCKD_SOURCE_DIR "/") + kPath);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }();
  return text;
}

// Every word that the code can reply with.
std::set<std::string_view> reply_words() {
  std::set<std::string_view> words = {
      kStatusOk, kStatusError, kStatusErrorAuth, kStatusErrorDenied, kStatusErrorDraining,
      "sig",     "lost",       "event"};
  for (const Command command : {Command::acquire, Command::release, Command::renew,
                                Command::enqueue, Command::await_turn}) {
    for (int i = 0; i <= static_cast<int>(Outcome::invalid_note); ++i) {
      const auto outcome = static_cast<Outcome>(i);
      if (outcome == Outcome::queued && command != Command::enqueue) continue;
      for (const bool detailed : {false, true}) words.insert(status_of(command, outcome, detailed));
    }
  }
  return words;
}

TEST(ProtocolPage, TheReplyWordsAreThoseOfTheCode) {
  std::set<std::string_view> shown;
  for (const TableRow& row : table(page(), "| word | to | means |")) {
    for (const std::string_view word : code_in(row.cells.at(0))) {
      EXPECT_TRUE(shown.insert(word).second) << kPath << ":" << row.line << ": twice";
    }
  }
  EXPECT_EQ(shown, reply_words());
}

// "l\nmy job\n0\n", written as printf takes it, as the lines of a request.
RequestLines request_of(const std::string& text) {
  const std::string_view view = text;
  const std::size_t first = view.find('\n');
  const std::size_t second = view.find('\n', first + 1);
  return {view.substr(0, first), view.substr(first + 1, second - first - 1),
          view.substr(second + 1, view.size() - second - 2)};
}

std::string without_escapes(std::string_view written) {
  std::string text = std::regex_replace(std::string(written), std::regex(R"(\\n)"), "\n");
  return std::regex_replace(text, std::regex(R"(\\t)"), "\t");
}

TEST(ProtocolPage, TheViolationsAreThoseOfTheCode) {
  std::set<int> codes;
  for (const TableRow& row : table(page(), "| code | cause | for example |")) {
    const int code = std::stoi(std::string(row.cells.at(0)));
    EXPECT_TRUE(codes.insert(code).second) << kPath << ":" << row.line << ": twice";
    const auto examples = code_in(row.cells.at(2));
    const bool of_the_parser = code < 10 || code > 12;
    EXPECT_EQ(of_the_parser, !examples.empty()) << kPath << ":" << row.line;
    for (const std::string_view example : examples) {
      const std::string text = without_escapes(example);
      ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << kPath << ":" << row.line;
      EXPECT_EQ(static_cast<int>(parse_request(request_of(text), Phase::open).violation), code)
          << kPath << ":" << row.line << ": " << example;
    }
  }
  EXPECT_EQ(codes, (std::set<int>{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
}

TEST(ProtocolPage, ThePatternsMatchAsShown) {
  const auto rows = table(page(), "| pattern | matches | does not match |");
  EXPECT_FALSE(rows.empty());
  for (const TableRow& row : rows) {
    const std::string_view pattern = code_in(row.cells.at(0)).at(0);
    ASSERT_TRUE(is_pattern(pattern)) << kPath << ":" << row.line;
    for (const std::size_t column : {1U, 2U}) {
      for (const std::string_view channel : code_in(row.cells.at(column))) {
        EXPECT_EQ(matches(pattern, channel), column == 1)
            << kPath << ":" << row.line << ": " << channel;
      }
    }
  }
}

// That of zlib, bit by bit.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

TEST(ProtocolPage, TheCheckValuesOfShardingAreRight) {
  ASSERT_EQ(crc32("123456789"), 0xcbf43926);  // the check value that everybody knows
  const auto rows = table(page(), "| key | CRC-32 | servers | position |");
  EXPECT_EQ(rows.size(), 4U);
  for (const TableRow& row : rows) {
    SCOPED_TRACE(std::string(kPath) + ":" + std::to_string(row.line));
    const std::uint32_t crc = crc32(code_in(row.cells.at(0)).at(0));
    std::array<char, 9> hex{};
    std::snprintf(hex.data(), hex.size(), "%08x", static_cast<unsigned>(crc));
    EXPECT_EQ(code_in(row.cells.at(1)).at(0), std::string_view(hex.data()));
    const auto servers = static_cast<std::uint32_t>(std::stoul(std::string(row.cells.at(2))));
    EXPECT_EQ(row.cells.at(3), std::to_string(crc % servers));
  }
}

TEST(ProtocolPage, TheFenceIsReadAsShown) {
  static const std::regex shown(
      R"(\n([0-9a-f]{16}) [0-9a-f]{16}\n.*fence = 0x([0-9a-f]{16}) = (\d+)\n)");
  std::smatch part;
  ASSERT_TRUE(std::regex_search(page(), part, shown));
  EXPECT_EQ(part[1], part[2]);
  EXPECT_EQ(std::stoull(part[1], nullptr, 16), std::stoull(part[3]));
}

TEST(ProtocolPage, TheSettingsHaveTheDefaultsShown) {
  const auto rows = table(page(), "| flag | default | flag | default |");
  EXPECT_FALSE(rows.empty());
  std::set<std::string_view> listed;
  for (const TableRow& row : rows) {
    for (const std::size_t column : {0U, 2U}) {
      if (row.cells.at(column).empty()) continue;
      SCOPED_TRACE(std::string(kPath) + ":" + std::to_string(row.line));
      const std::string_view flag = code_in(row.cells.at(column)).at(0);
      listed.insert(flag);
      const config::Option* option = find_option(settings(Profile::lockd), flag.substr(2));
      ASSERT_NE(option, nullptr) << flag;
      EXPECT_EQ(row.cells.at(column + 1), default_text(*option)) << flag;
    }
  }
  static const std::regex flag("--[a-z][a-z-]*[a-z]");
  const std::set<std::string> not_settings = {"--help", "--forward-timeout"};  // of lockd-ha
  for (auto found = std::sregex_iterator(page().begin(), page().end(), flag);
       found != std::sregex_iterator(); ++found) {
    std::string name = found->str();
    if (name.starts_with("--no-")) name.erase(2, 3);
    EXPECT_TRUE(listed.contains(name) || not_settings.contains(name)) << name << " is not listed";
  }
}

}  // namespace
}  // namespace lockd
