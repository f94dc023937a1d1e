#include "cluster/peer_frame.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

TEST(PeerFrame, ComesOutAsItWentInWhereverItIsCut) {
  std::string bytes;
  write_frame(bytes, FrameType::bytes, 17, "ping\n\n\n");
  write_frame(bytes, FrameType::taken, 18, number_bytes(4096));
  for (std::size_t cut = 0; cut < kFrameHeadSize + 7; ++cut) {
    Frame frame;
    std::string_view unread = std::string_view(bytes).substr(0, cut);
    EXPECT_EQ(take_frame(unread, &frame), FrameStatus::incomplete) << cut;
    EXPECT_EQ(unread.size(), cut);
  }
  Frame frame;
  std::string_view unread = bytes;
  ASSERT_EQ(take_frame(unread, &frame), FrameStatus::complete);
  EXPECT_EQ(frame.type, FrameType::bytes);
  EXPECT_EQ(frame.client, 17U);
  EXPECT_EQ(frame.payload, "ping\n\n\n");
  ASSERT_EQ(take_frame(unread, &frame), FrameStatus::complete);
  EXPECT_EQ(frame.type, FrameType::taken);
  EXPECT_EQ(number_in(frame.payload), 4096U);
  EXPECT_TRUE(unread.empty());
}

TEST(PeerFrame, OfManyBytesIsSeveral) {
  const std::string text(2 * kFramePayloadMax + 1, 'x');
  std::string bytes;
  write_frame(bytes, FrameType::bytes, 1, text);
  std::string read;
  std::string_view unread = bytes;
  for (Frame frame; take_frame(unread, &frame) == FrameStatus::complete;) read += frame.payload;
  EXPECT_EQ(read, text);
}

TEST(PeerFrame, OfNoKnownTypeOrTooLargeIsRefusedByItsHead) {
  std::string bytes;
  write_frame(bytes, FrameType::open, 1);
  Frame frame;
  std::string other = bytes;
  other[0] = 9;
  std::string_view unread = other;
  EXPECT_EQ(take_frame(unread, &frame), FrameStatus::malformed);
  bytes[11] = 1;  // 65,536 and more
  bytes[9] = 1;
  unread = bytes;
  EXPECT_EQ(take_frame(unread, &frame), FrameStatus::malformed);
}

TEST(PeerFrame, SaysWhoAClientIs) {
  const Opening opening{.is_http = true,
                        .is_tls = true,
                        .names_itself = true,
                        .has_certificate = true,
                        .connected_ms = 42,
                        .peer = "10.0.0.7:51234",
                        .name = "ann@build-7:4711",
                        .note = "deploy",
                        .principal = "billing"};
  EXPECT_EQ(opening_in(to_bytes(opening)), opening);
  EXPECT_EQ(opening_in(to_bytes({.is_loopback = true})), (Opening{.is_loopback = true}));
  std::string cut = to_bytes(opening);
  cut.pop_back();
  EXPECT_EQ(opening_in(cut), std::nullopt);
  EXPECT_EQ(opening_in(to_bytes(opening) + "x"), std::nullopt);
}

TEST(PeerFrame, RefusesAClientWhoseNameIsNone) {
  EXPECT_EQ(opening_in(to_bytes({.names_itself = true, .name = ""})), std::nullopt);
  EXPECT_EQ(opening_in(to_bytes({.peer = "a\nb"})), std::nullopt);
  EXPECT_EQ(opening_in(to_bytes({.peer = std::string(65, 'x')})), std::nullopt);
}

}  // namespace
}  // namespace lockd
