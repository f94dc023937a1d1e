#include "lockctl/http/event_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockd::cli {
namespace {

std::vector<std::string> events(const std::vector<std::string>& pieces) {
  EventStreamParser parser;
  std::vector<std::string> all;
  for (const std::string& piece : pieces) {
    EXPECT_TRUE(parser.feed(
        piece, [&](const StreamEvent& event) { all.push_back(event.name + '=' + event.data); }));
  }
  return all;
}

TEST(EventStream, IsTheSameHoweverItIsCut) {
  const std::string stream =
      ": ping\n\nevent: granted\ndata: {\"a\":1}\n\n"
      "event: released\r\ndata: x\r\ndata:y\r\n\r\nid: 7\ndata\n\nevent: never\n\n";
  const std::vector<std::string> expected{"granted={\"a\":1}", "released=x\ny", "="};
  EXPECT_EQ(events({stream}), expected);
  for (std::size_t at = 0; at < stream.size(); ++at) {
    EXPECT_EQ(events({stream.substr(0, at), stream.substr(at)}), expected) << at;
  }
}

TEST(EventStream, HasALimit) {
  EventStreamParser parser;
  const std::string much(1 << 16, 'x');
  bool fine = true;
  for (int i = 0; i < 17; ++i) fine = parser.feed(much, [](const StreamEvent&) {});
  EXPECT_FALSE(fine);
}

}  // namespace
}  // namespace lockd::cli
