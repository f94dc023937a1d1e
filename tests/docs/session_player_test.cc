// A page that is wrong is found out: without this, a page that is never played would pass as well.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "docs/page.h"
#include "docs/session_player.h"
#include "docs/shown_session.h"

namespace lockd {
namespace {

// "<line>: <text>" of the first complaint about a page with one session of these lines, which begin
// on its second one; empty when there is none.
std::string complaint_of(const std::string& lines) {
  const ShownSessions shown = sessions_on("```session\n" + lines + "```\n");
  const auto written = [](const Complaint& complaint) {
    return std::to_string(complaint.line) + ": " + complaint.text;
  };
  if (!shown.complaints.empty()) return written(shown.complaints[0]);
  EXPECT_EQ(shown.sessions.size(), 1U);
  const auto complaint = play(shown.sessions.at(0));
  return complaint ? written(*complaint) : "";
}

constexpr const char* kTakeAndWait =
    "A> l⏎k⏎0⏎\nA< ok <token1> 33\n"
    "B> l⏎k⏎60⏎\nB (waits)\n";

TEST(SessionPlayer, WhatIsRightGoesThrough) {
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\nA< ok\n"), "");
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎ping⏎⏎⏎\nA< ok\nA< ok\n"), "");
  EXPECT_EQ(complaint_of("A> x⏎⏎⏎\nA< error\nA (is closed)\n"), "");
  EXPECT_EQ(complaint_of("$ dflockd --default-lease-ttl 5\nA> l⏎k⏎0⏎\nA< ok <token1> 5\n"), "");
  EXPECT_EQ(complaint_of(std::string(kTakeAndWait) +
                         "A (closes)\nB< ok <token2> 33\n(<token1> sorts before <token2>)\n"),
            "");
  EXPECT_EQ(complaint_of(std::string(kTakeAndWait) + "(SIGTERM)\nB< error\n"), "");
}

TEST(SessionPlayer, AWrongReplyIsShownWithItsLine) {
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\nA< OK\n"), "3: shown:    OK\n  received: ok");
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\nA< ok \n"), "3: no step of a session: A< ok ");
  EXPECT_EQ(complaint_of("A> w⏎k⏎0⏎\nA< ok <token1> 33\n"),
            "3: shown:    ok <token1> 33\n  received: error");
}

TEST(SessionPlayer, WhatIsNotShownIsMissed) {
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎ping⏎⏎⏎\nA< ok\n"), "1: A has also received: ok");
  EXPECT_EQ(complaint_of("A> x⏎⏎⏎\nA (is closed)\n"), "3: it is not closed, but received: error");
  EXPECT_EQ(complaint_of("A> x⏎⏎⏎\nA< error\nA< ok\n"), "4: shown:    ok\n  received: <end>");
  EXPECT_EQ(complaint_of(kTakeAndWait), "1: it ends while B waits");
}

TEST(SessionPlayer, WhoIsAnsweredDoesNotWait) {
  EXPECT_EQ(complaint_of("A> w⏎k⏎0⏎\nA (waits)\nA< error\n"),
            "2: it does not wait, but received: error");
}

TEST(SessionPlayer, APlaceholderKeepsItsValue) {
  const std::string two =
      "A> l⏎a⏎0⏎\nA< ok <token1> 33\nA> r⏎a⏎<token1>⏎\nA< ok\nA> l⏎a⏎0⏎\nA< ok <token";
  EXPECT_EQ(complaint_of(two + "2> 33\n(<token1> sorts before <token2>)\n"), "");
  EXPECT_NE(complaint_of(two + "2> 33\n(<token2> sorts before <token1>)\n"), "");
  EXPECT_TRUE(complaint_of(two + "1> 33\n").starts_with("7: shown:    ok 0"));
  EXPECT_EQ(complaint_of("A> r⏎a⏎<token1>⏎\nA< ok\n"), "2: a placeholder that has no value yet");
  EXPECT_TRUE(complaint_of("A> l⏎a⏎0⏎\nA< ok <seconds1> 33\n").starts_with("3: shown:"));
}

TEST(SessionPlayer, FlagsAreThoseOfTheServer) {
  EXPECT_TRUE(complaint_of("$ dflockd --no-such-flag 1\nA> ping⏎⏎⏎\nA< ok\n").starts_with("1: "));
}

TEST(ShownSession, WhatMeansNothingIsRefused) {
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\nthen A hears ok\n"),
            "3: no step of a session: then A hears ok");
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\nB< ok\n"), "2: what comes of this must be shown next");
  EXPECT_EQ(complaint_of("A> ping⏎⏎⏎\n"), "2: what comes of this must be shown next");
  EXPECT_EQ(complaint_of("A< ok\nA (waits)\n"), "2: to wait, something must have been sent");
  EXPECT_EQ(complaint_of(""), "1: a session of nothing");
  EXPECT_EQ(complaint_of("A (closes)\n$ dflockd --port 0\n"),
            "3: no step of a session: $ dflockd --port 0");
  EXPECT_EQ(sessions_on("```session --port 0\nA (closes)\n```\n").complaints.at(0).text,
            "flags stand on the line below");
  EXPECT_EQ(sessions_on("```session\nA (closes)\n").complaints.at(0).text, "it does not end");
}

TEST(ShownSession, OtherBlocksAreNone) {
  EXPECT_TRUE(sessions_on("text\n```\nA> x\n```\n```abnf\n```\n").sessions.empty());
  EXPECT_EQ(sessions_on("```sh\nls\n```\n```session\nA (closes)\n```\n").sessions.at(0).line, 4U);
}

TEST(Page, ATableHasRowsAndCells) {
  const auto rows =
      table("# x\n| a | b |\n|---|---|\n| `1` `2` | |\n\n| no | more |\n", "| a | b |");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].line, 4U);
  EXPECT_EQ(rows[0].cells, (std::vector<std::string_view>{"`1` `2`", ""}));
  EXPECT_EQ(code_in(rows[0].cells[0]), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_TRUE(table("| a | b |", "| a | b |").empty());
  EXPECT_TRUE(table("none", "| a | b |").empty());
}

}  // namespace
}  // namespace lockd
