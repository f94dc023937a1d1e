// The hex dump in docs/journal_format.md is what the journal writes.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "journal/testing/journal_fixture.h"

namespace lockd {
namespace {

// As `hexdump -C` shows it.
std::string hex_dump(std::string_view bytes) {
  std::string text;
  char piece[32];
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    std::snprintf(piece, sizeof piece, "%08zx ", line);
    text += piece;
    std::string letters;
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 8) text += ' ';
      if (line + i >= bytes.size()) {
        text += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[line + i]);
      std::snprintf(piece, sizeof piece, " %02x", static_cast<unsigned>(byte));
      text += piece;
      letters += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    }
    text += "  |" + letters + "|\n";
  }
  return text;
}

// The segment that the page explains: a grant to a name; then its renewal, its release and a grant
// to a session, written together.
std::string worked_example() {
  MemoryStorage storage;
  storage.now = {.boot_id = {0xb0, 0x07}, .boot_ns = 60'000'000'000, .wall_ns = 0};
  storage.now.wall_ns = 1'700'000'000'000'000'000;
  LogJournalOptions options;
  options.id = JournalId{0x1d};
  LogJournal journal(storage, options);
  recover_all(journal);
  journal.append(std::vector{granted("stone-42", 1)});
  journal.turn();
  storage.advance(1'000'000'000);
  Event grant = granted("stone-42", 2, Holder::of_secret(0x0123456789abcdef));
  journal.append(std::vector{renewed("stone-42", 1)});
  journal.append(std::vector{ended("stone-42", 1), grant});
  journal.turn();
  const std::string bytes = storage.bytes(segment_name(1));
  return bytes.substr(0, bytes.find_last_not_of('\0') + 1);
}

TEST(FormatPage, ItsDumpIsWhatIsWritten) {
  std::ifstream file(LOCKD_SOURCE_DIR "/docs/journal_format.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string dump = hex_dump(worked_example());
  EXPECT_NE(page.find("```\n" + dump + "```\n"), std::string::npos)
      << "docs/journal_format.md should have:\n"
      << dump;
}

}  // namespace
}  // namespace lockd
