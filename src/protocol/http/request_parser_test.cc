#include "protocol/http/request_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/http/testing/refused_requests.h"

namespace lockd {
namespace {

const std::string kGet = "GET / HTTP/1.1\r\n";
const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\n";
const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";

// What became of one request that came in pieces of `piece` bytes, and what was left of it.
struct Parsed {
  bool complete = false;
  int status = 0;
  HttpRequest request;
  std::string rest;
};

Parsed parse(const std::string& text, std::size_t piece) {
  RequestParser parser;
  std::string unread;
  for (std::size_t at = 0; at < text.size() && !parser.is_complete() && !parser.error();) {
    const std::string next = text.substr(at, piece);
    at += next.size();
    unread += next;
    for (std::size_t taken = 1; taken > 0;) {
      taken = parser.take_in(unread);
      unread.erase(0, taken);
    }
    if (parser.is_complete()) unread += text.substr(at);
  }
  return {parser.is_complete(), parser.error().status, parser.request(), unread};
}

TEST(RequestParser, TakesWhatIsPlain) {
  const std::string text =
      "POST /v1/acquire?x=1 HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer s\r\n"
      "Origin: http://a\r\nContent-Length: 5\r\n\r\nhelloGET";
  for (const std::size_t piece : {text.size(), std::size_t{1}, std::size_t{7}}) {
    const Parsed parsed = parse(text, piece);
    ASSERT_TRUE(parsed.complete) << piece;
    EXPECT_EQ(parsed.request.method, HttpMethod::post);
    EXPECT_EQ(parsed.request.target, "/v1/acquire?x=1");
    EXPECT_EQ(parsed.request.host, "localhost:8080");
    EXPECT_EQ(parsed.request.authorization, "Bearer s");
    EXPECT_EQ(parsed.request.origin, "http://a");
    EXPECT_EQ(parsed.request.body, "hello");
    EXPECT_TRUE(parsed.request.keep_alive);
    EXPECT_EQ(parsed.rest, "GET") << piece;
  }
}

TEST(RequestParser, JoinsChunks) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
  for (const std::size_t piece : {text.size(), std::size_t{1}}) {
    const Parsed parsed = parse(text, piece);
    ASSERT_TRUE(parsed.complete) << piece;
    EXPECT_EQ(parsed.request.body, "abc0123456789");
  }
}

TEST(RequestParser, TakesNoChunksAtAll) {
  const std::string text = kChunked + "0\r\n\r\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const Parsed parsed = parse(text, piece);
    ASSERT_TRUE(parsed.complete) << piece;
    EXPECT_EQ(parsed.request.body, "");
  }
}

TEST(RequestParser, KnowsWhoStays) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n", 100).request.keep_alive);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 100).request.keep_alive);
  EXPECT_FALSE(
      parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 100).request.keep_alive);
}

TEST(RequestParser, GivesLeaveToSendTheBodyOnce) {
  RequestParser parser;
  parser.take_in("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  EXPECT_TRUE(parser.wants_continue());
  EXPECT_FALSE(parser.wants_continue());
  parser.take_in("x");
  EXPECT_TRUE(parser.is_complete());
}

TEST(RequestParser, ExpectsNothingOfHttp10) {
  RequestParser parser;
  parser.take_in("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  EXPECT_FALSE(parser.wants_continue());
  parser.take_in("x");
  EXPECT_TRUE(parser.is_complete());
}

TEST(RequestParser, SaysWhenTheHeadIsThere) {
  const std::string head = kPost + "Content-Length: 3\r\n\r\n";
  RequestParser parser;
  EXPECT_EQ(parser.take_in(head.substr(0, head.size() - 1)), 0U);
  EXPECT_FALSE(parser.has_head());
  EXPECT_EQ(parser.take_in(head + "abc"), head.size()) << "the head, and nothing of the body";
  EXPECT_TRUE(parser.has_head());
  EXPECT_FALSE(parser.is_complete());
  EXPECT_EQ(parser.request().target, "/");
  EXPECT_EQ(parser.take_in("abc"), 3U);
  EXPECT_TRUE(parser.is_complete());
  EXPECT_EQ(parser.request().body, "abc");
}

TEST(RequestParser, AnAnnouncedBodyTakesNoMemory) {
  RequestParser parser;
  parser.take_in(kPost + "Content-Length: 1048576\r\n\r\n");
  ASSERT_TRUE(parser.has_head());
  EXPECT_LT(parser.buffered(), 100U);
  parser.take_in(std::string(10'000, 'x'));
  EXPECT_GE(parser.buffered(), 10'000U);
  EXPECT_LT(parser.buffered(), 100'000U);
}

TEST(RequestParser, ABodyMayBeForgotten) {
  for (const std::string& body :
       {std::string("Content-Length: 3\r\n\r\nabc"),
        std::string("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")}) {
    std::string unread = kPost + body;
    RequestParser parser;
    unread.erase(0, parser.take_in(unread));
    parser.drop_body();
    unread.erase(0, parser.take_in(unread));
    EXPECT_TRUE(parser.is_complete()) << body;
    EXPECT_EQ(parser.request().body, "");
    EXPECT_EQ(unread, "");
  }
}

TEST(RequestParser, RefusesWhatTwoParsersCouldReadDifferently) {
  for (const RefusedRequest& refused : refused_requests()) {
    for (const std::size_t piece : {refused.text.size(), std::size_t{1}}) {
      const Parsed parsed = parse(refused.text, piece);
      EXPECT_EQ(parsed.status, refused.status) << refused.what << ", in pieces of " << piece;
      EXPECT_FALSE(parsed.complete) << refused.what;
    }
  }
}

TEST(RequestParser, TakesTheLargest) {
  const std::string body(RequestParser::kBodyMax, 'x');
  EXPECT_TRUE(
      parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n" + body, 4096).complete);
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string fill(RequestParser::kHeadMax - head.size() - 4, 'x');
  EXPECT_TRUE(parse(head + fill + "\r\n\r\n", 100'000).complete);
  EXPECT_EQ(parse(head + fill + "x\r\n\r\n", 100'000).status, 431);
}

}  // namespace
}  // namespace lockd
