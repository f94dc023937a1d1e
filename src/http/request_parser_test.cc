#include "http/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockd {
namespace {

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
    unread.erase(0, parser.take_in(unread));
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

struct Refused {
  const char* what;
  std::string text;
  int status = 400;
};

const std::string kGet = "GET / HTTP/1.1\r\n";
const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\n";
const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";

TEST(RequestParser, RefusesWhatTwoParsersCouldReadDifferently) {
  const std::vector<Refused> all = {
      {"both lengths", kPost + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"both lengths, the other way", kPost + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"},
      {"a length twice", kPost + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
      {"two lengths", kPost + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"},
      {"a list of lengths", kPost + "Content-Length: 1, 1\r\n\r\nx"},
      {"a length with a sign", kPost + "Content-Length: +1\r\n\r\nx"},
      {"a negative length", kPost + "Content-Length: -1\r\n\r\nx"},
      {"a length in hex", kPost + "Content-Length: 0x1\r\n\r\nx"},
      {"no length", kPost + "Content-Length:\r\n\r\nx"},
      {"a length beyond 64 bits", kPost + "Content-Length: 18446744073709551617\r\n\r\nx"},
      {"another coding", kPost + "Transfer-Encoding: gzip\r\n\r\n"},
      {"two codings", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {"chunked twice", kPost + "Transfer-Encoding: chunked, chunked\r\n\r\n"},
      {"chunked in two fields", kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"a coding that looks like chunked", kPost + "Transfer-Encoding: xchunked\r\n\r\n"},
      {"a coding with a tab inside", kPost + "Transfer-Encoding: chunked\x0b\r\n\r\n"},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"a space before the colon", kPost + "Content-Length : 1\r\n\r\nx"},
      {"a folded field", kPost + "X: a\r\n b\r\n\r\n"},
      {"a field folded by a tab", kPost + "X: a\r\n\tb\r\n\r\n"},
      {"a space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"a bare line feed", "GET / HTTP/1.1\nHost: a\n\n"},
      {"a bare line feed in the fields", kGet + "Host: a\nX: b\r\n\r\n"},
      {"a bare carriage return", kGet + "Host: a\rX: b\r\n\r\n"},
      {"a zero byte", kGet + "Host: a\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n"},
      {"a control character", kGet + "Host: a\r\nX: a\x01\r\n\r\n"},
      {"no host", kGet + "\r\n"},
      {"an empty host", kGet + "Host:\r\n\r\n"},
      {"a host twice", kGet + "Host: a\r\nHost: a\r\n\r\n"},
      {"a host with a path", kGet + "Host: a/b\r\n\r\n"},
      {"a host with a user", kGet + "Host: u@a\r\n\r\n"},
      {"authorization twice", kGet + "Host: a\r\nAuthorization: x\r\nAuthorization: y\r\n\r\n"},
      {"origin twice", kGet + "Host: a\r\nOrigin: x\r\nOrigin: y\r\n\r\n"},
      {"an absolute target", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HTTP/2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {"HTTP/0.9", "GET /\r\n\r\n"},
      {"no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a field without a colon", kGet + "Host: a\r\nX\r\n\r\n"},
      {"a field without a name", kGet + "Host: a\r\n: b\r\n\r\n"},
      {"an empty line first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
      {"a chunk extension", kChunked + "1;a=b\r\nx\r\n0\r\n\r\n"},
      {"an extension of the last chunk", kChunked + "0;a\r\n\r\n"},
      {"a trailer", kChunked + "0\r\nX: y\r\n\r\n"},
      {"a bad chunk size", kChunked + "g\r\n"},
      {"a chunk size with a sign", kChunked + "+1\r\nx\r\n"},
      {"a chunk size in 0x", kChunked + "0x1\r\nx\r\n0\r\n\r\n"},
      {"a chunk with a bare line feed", kChunked + "1\nx\r\n0\r\n\r\n"},
      {"a chunk without its end", kChunked + "1\r\nxy\r\n0\r\n\r\n"},
      {"a chunk size of many zeros", kChunked + std::string(100, '0')},
      {"an unknown expectation", kPost + "Expect: more\r\n\r\n", 417},
      {"a body too large", kPost + "Content-Length: 1048577\r\n\r\n", 413},
      {"chunks too large", kChunked + "100001\r\n", 413},
      {"a head too large", kGet + "X: " + std::string(20'000, 'x'), 431},
      {"a target too large", "GET /" + std::string(20'000, 'x'), 431},
  };
  for (const Refused& refused : all) {
    for (const std::size_t piece : {refused.text.size(), std::size_t{1}}) {
      const Parsed parsed = parse(refused.text, piece);
      EXPECT_EQ(parsed.status, refused.status) << refused.what << ", in pieces of " << piece;
      EXPECT_FALSE(parsed.complete) << refused.what;
    }
  }
}

TEST(RequestParser, TakesTheLargest) {
  const std::string body(RequestParser::kBodyMax, 'x');
  EXPECT_TRUE(parse(kPost + "Content-Length: 1048576\r\n\r\n" + body, 4096).complete);
  const std::string head = kGet + "Host: a\r\nX: ";
  const std::string fill(RequestParser::kHeadMax - head.size() - 4, 'x');
  EXPECT_TRUE(parse(head + fill + "\r\n\r\n", 100'000).complete);
  EXPECT_EQ(parse(head + fill + "x\r\n\r\n", 100'000).status, 431);
}

}  // namespace
}  // namespace lockd
