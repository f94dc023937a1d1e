// Requests that two parsers could read differently, and others that are refused for their framing:
// for the tests of the parser and of the server.
#pragma once

#include <string>
#include <vector>

namespace lockd {

struct RefusedRequest {
  const char* what;
  std::string text;
  int status = 400;
};

inline std::vector<RefusedRequest> refused_requests() {
  const std::string get = "GET / HTTP/1.1\r\n";
  const std::string post = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"both lengths", post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"both lengths, the other way",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"},
      {"a length twice", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
      {"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"},
      {"a list of lengths", post + "Content-Length: 1, 1\r\n\r\nx"},
      {"a length with a sign", post + "Content-Length: +1\r\n\r\nx"},
      {"a negative length", post + "Content-Length: -1\r\n\r\nx"},
      {"a length in hex", post + "Content-Length: 0x1\r\n\r\nx"},
      {"no length", post + "Content-Length:\r\n\r\nx"},
      {"a length beyond 64 bits", post + "Content-Length: 18446744073709551617\r\n\r\nx"},
      {"another coding", post + "Transfer-Encoding: gzip\r\n\r\n"},
      {"two codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {"chunked twice", post + "Transfer-Encoding: chunked, chunked\r\n\r\n"},
      {"chunked in two fields",
       post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"a coding that looks like chunked", post + "Transfer-Encoding: xchunked\r\n\r\n"},
      {"a coding with a tab inside", post + "Transfer-Encoding: chunked\x0b\r\n\r\n"},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"a space before the colon", post + "Content-Length : 1\r\n\r\nx"},
      {"a folded field", post + "X: a\r\n b\r\n\r\n"},
      {"a field folded by a tab", post + "X: a\r\n\tb\r\n\r\n"},
      {"a space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"a bare line feed", "GET / HTTP/1.1\nHost: a\n\n"},
      {"a bare line feed in the fields", get + "Host: a\nX: b\r\n\r\n"},
      {"a bare carriage return", get + "Host: a\rX: b\r\n\r\n"},
      {"a zero byte", get + "Host: a\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n"},
      {"a control character", get + "Host: a\r\nX: a\x01\r\n\r\n"},
      {"no host", get + "\r\n"},
      {"an empty host", get + "Host:\r\n\r\n"},
      {"a host twice", get + "Host: a\r\nHost: a\r\n\r\n"},
      {"a host with a path", get + "Host: a/b\r\n\r\n"},
      {"a host with a user", get + "Host: u@a\r\n\r\n"},
      {"authorization twice", get + "Host: a\r\nAuthorization: x\r\nAuthorization: y\r\n\r\n"},
      {"origin twice", get + "Host: a\r\nOrigin: x\r\nOrigin: y\r\n\r\n"},
      {"an absolute target", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HTTP/2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {"HTTP/0.9", "GET /\r\n\r\n"},
      {"less than a version", "GET / 38\r\n\r\n"},
      {"no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"a field without a colon", get + "Host: a\r\nX\r\n\r\n"},
      {"a field without a name", get + "Host: a\r\n: b\r\n\r\n"},
      {"an empty line first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
      {"a chunk extension", chunked + "1;a=b\r\nx\r\n0\r\n\r\n"},
      {"an extension of the last chunk", chunked + "0;a\r\n\r\n"},
      {"a trailer", chunked + "0\r\nX: y\r\n\r\n"},
      {"a bad chunk size", chunked + "g\r\n"},
      {"a chunk size with a sign", chunked + "+1\r\nx\r\n"},
      {"a chunk size in 0x", chunked + "0x1\r\nx\r\n0\r\n\r\n"},
      {"a chunk with a bare line feed", chunked + "1\nx\r\n0\r\n\r\n"},
      {"a chunk without its end", chunked + "1\r\nxy\r\n0\r\n\r\n"},
      {"a chunk size of many zeros", chunked + std::string(100, '0')},
      {"an unknown expectation", post + "Expect: more\r\n\r\n", 417},
      {"a body too large", post + "Content-Length: 1048577\r\n\r\n", 413},
      {"chunks too large", chunked + "100001\r\n", 413},
      {"a head too large", get + "X: " + std::string(20'000, 'x'), 431},
      {"a target too large", "GET /" + std::string(20'000, 'x'), 431},
  };
}

}  // namespace lockd
