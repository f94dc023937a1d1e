#include "protocol/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

namespace lockd {
namespace {

namespace http = boost::beast::http;

// More than a chunk's size and line ends ever take.

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A name or address, with a port or without: what may stand in a Host.
bool is_host(std::string_view text) {
  static constexpr std::string_view kOthers = "-._~:[]%";
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

HttpMethod method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return HttpMethod::get;
    case http::verb::head: return HttpMethod::head;
    case http::verb::post: return HttpMethod::post;
    case http::verb::options: return HttpMethod::options;
    default: return HttpMethod::other;
  }
}

// The head of a chunk: the line end of the chunk before it, its size in hex, a line end; behind a
// size of zero one more. Nothing else: no extension, no trailer.
class ChunkHead {
 public:
  ChunkHead(std::string_view text, bool follows_another) : left_(text), all_(text.size()) {
    if (follows_another) take_line_end("bad chunk");
    const std::size_t digits = take_digits();
    if (is_whole_ && !left_.empty() && left_.front() == ';') problem_ = "a chunk extension";
    if (digits == 0 && is_whole_) problem_ = "bad chunk";
    take_line_end("bad chunk");
    if (is_last_) take_line_end("a trailer");
  }

  bool is_whole() const { return is_whole_ && problem_ == nullptr; }
  const char* problem() const { return problem_; }
  std::size_t size() const { return all_ - left_.size(); }

 private:
  static constexpr std::size_t kDigitsMax = 8;

  bool may_go_on() const { return is_whole_ && problem_ == nullptr; }
  void take_line_end(const char* otherwise) {
    for (const char c : {'\r', '\n'}) {
      if (!may_go_on()) return;
      if (left_.empty()) {
        is_whole_ = false;
      } else if (left_.front() != c) {
        problem_ = otherwise;
      } else {
        left_.remove_prefix(1);
      }
    }
  }
  std::size_t take_digits() {
    std::size_t digits = 0;
    is_last_ = true;
    while (may_go_on() && !left_.empty() && is_hex_digit(left_.front())) {
      is_last_ = is_last_ && left_.front() == '0';
      left_.remove_prefix(1);
      if (++digits > kDigitsMax) problem_ = "bad chunk";
    }
    if (left_.empty()) is_whole_ = false;
    return digits;
  }
  static bool is_hex_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  }

  std::string_view left_;
  const std::size_t all_;
  const char* problem_ = nullptr;
  bool is_whole_ = true;
  bool is_last_ = false;
};

}  // namespace

RequestParser::RequestParser() {
  eager(true);
  header_limit(kHeadMax);
  body_limit(kBodyMax);
}

std::size_t RequestParser::take_in(std::string_view unread) {
  if (error_ || is_complete()) return 0;
  if (head_size_ == 0) {
    if (!find_head(unread)) return 0;
    const std::size_t head = feed(unread.substr(0, head_size_));
    // All of it is there: what Beast would still wait for never comes.
    if (!error_ && !is_header_done()) refuse(400, "bad version");
    return head;
  }
  std::size_t taken = 0;
  while (!error_ && !is_done() && taken < unread.size()) {
    const std::string_view rest = unread.substr(taken);
    const std::string_view next = has_coding_ ? next_of_chunks(rest) : rest;
    if (next.empty()) break;
    const std::size_t fed = feed(next);
    taken += fed;
    if (fed == 0) break;
  }
  return taken;
}

// What of a chunked body is fed next: data of the chunk that has begun, or the head of the next,
// when all of it is here. Beast would judge a head differently by how much of it has come, and of
// the last one it asserts to see all.
std::string_view RequestParser::next_of_chunks(std::string_view unread) {
  if (chunk_left_ > 0) return unread.substr(0, chunk_left_);
  ChunkHead head(unread, has_chunk_);
  if (head.problem() != nullptr) refuse(400, head.problem());
  return head.is_whole() ? unread.substr(0, head.size()) : std::string_view();
}

// Looks for the empty line. Beast would take the lines one by one; all at once are easier to judge,
// and nothing is left half done. Each byte is looked at once.
bool RequestParser::find_head(std::string_view unread) {
  const std::size_t end = std::min(unread.size(), kHeadMax);
  for (; scanned_ < end; ++scanned_) {
    const char c = unread[scanned_];
    const bool after_cr = scanned_ > 0 && unread[scanned_ - 1] == '\r';
    const bool after_line = scanned_ > 0 && unread[scanned_ - 1] == '\n';
    if ((c == '\n') != after_cr) return refuse(400, "a line must end with CR LF"), false;
    if (c == '\n' && scanned_ >= 3 && unread[scanned_ - 2] == '\n') {
      head_size_ = ++scanned_;
      return true;
    }
    if (after_line && (c == ' ' || c == '\t')) return refuse(400, "a folded header field"), false;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\r' && c != '\n' && c != '\t') || byte == 0x7f) {
      return refuse(400, "a control character in the head"), false;
    }
  }
  if (unread.size() >= kHeadMax) refuse(431, "the head is larger than 16384 bytes");
  return false;
}

// Requests that Beast itself rejects get a general message: honest clients do not send them.
std::size_t RequestParser::feed(std::string_view bytes) {
  Code code;
  const std::size_t taken = put(boost::asio::buffer(bytes.data(), bytes.size()), code);
  if (!code || code == http::error::need_more || error_) return taken;
  if (code == http::error::body_limit) {
    refuse(413, "the body is larger than 1048576 bytes");
  } else if (code == http::error::header_limit) {
    refuse(431, "the head is larger than 16384 bytes");
  } else {
    // What is wrong with a chunk it calls by names that depend on how much of it has come.
    refuse(400, is_header_done() ? "bad chunk" : code.message());
  }
  return taken;
}

bool RequestParser::wants_continue() {
  if (!expects_continue_ || !is_header_done() || is_done() || error_) return false;
  expects_continue_ = false;
  return !request_.http_1_0;  // which knows nothing of it
}

void RequestParser::on_request_impl(http::verb method, View, View target, int version, Code& code) {
  request_.method = method_of(method);
  request_.http_1_0 = version == 10;
  request_.target.assign(target.data(), target.size());
  if (!target.starts_with('/')) refuse(code, 400, "the target must be a path");
}

void RequestParser::on_field_impl(Field field, View name, View value, Code& code) {
  if (is_header_done()) return refuse(code, 400, "a trailer");
  switch (field) {
    case Field::host:
      take_once(has_host_, request_.host, "Host", value, code);
      if (!is_host(value)) refuse(code, 400, "bad Host");
      return;
    case Field::content_length:
      if (has_length_ || !is_digits(value)) refuse(code, 400, "bad Content-Length");
      has_length_ = true;
      return;
    case Field::transfer_encoding: return check_transfer_coding(value, code);
    case Field::authorization:
      return take_once(has_authorization_, request_.authorization, "Authorization", value, code);
    case Field::origin:
      return take_once(request_.has_origin, request_.origin, "Origin", value, code);
    case Field::forwarded: request_.is_forwarded = true; return;
    case Field::expect:
      expects_continue_ = boost::beast::iequals(value, "100-continue");
      if (!expects_continue_) refuse(code, 417, "Expect may only be 100-continue");
      return;
    default:
      request_.is_forwarded |= boost::beast::iequals(name, "X-Forwarded-For");
      if (!boost::beast::iequals(name, "Sec-Fetch-Site")) return;
      request_.is_cross_site |= boost::beast::iequals(value, "cross-site");
      return;
  }
}

void RequestParser::take_once(bool& seen, std::string& kept, std::string_view name, View value,
                              Code& code) {
  if (seen) return refuse(code, 400, std::string(name) + " is given twice");
  seen = true;
  kept.assign(value.data(), value.size());
}

void RequestParser::check_transfer_coding(std::string_view value, Code& code) {
  if (has_coding_ || request_.http_1_0 || !boost::beast::iequals(value, "chunked")) {
    refuse(code, 400, "bad Transfer-Encoding");
  }
  has_coding_ = true;
}

void RequestParser::on_header_impl(Code& code) {
  request_.keep_alive = keep_alive();
  if (has_length_ && has_coding_) return refuse(code, 400, "two lengths");
  if (!request_.http_1_0 && request_.host.empty()) return refuse(code, 400, "Host is missing");
}

std::size_t RequestParser::on_body_impl(View body, Code&) {
  if (!drops_body_) request_.body.append(body.data(), body.size());
  return body.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t size, View extensions, Code& code) {
  chunk_left_ = size;
  has_chunk_ = true;
  if (!extensions.empty()) refuse(code, 400, "a chunk extension");
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, View body, Code& code) {
  chunk_left_ -= body.size();
  return on_body_impl(body, code);
}

void RequestParser::refuse(Code& code, int status, std::string_view detail) {
  refuse(status, detail);
  code = http::make_error_code(http::error::bad_field);
}

void RequestParser::refuse(int status, std::string_view detail) {
  if (error_) return;
  const bool large = status == 413 || status == 431;
  error_ = {status, large ? "too_large" : "bad_request", std::string(detail)};
}

std::string write_request(const HttpRequest& request, std::string_view origin) {
  const bool posts = request.method == HttpMethod::post;
  const std::string_view method = request.method == HttpMethod::head ? "HEAD" : "GET";
  std::string text(posts ? "POST" : method);
  text += ' ' + request.target + (request.http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  text += "Host: " + (request.host.empty() ? "-" : request.host) + "\r\n";
  if (!origin.empty()) text.append("Origin: ").append(origin).append("\r\n");
  // The reply says the same to the client.
  text += request.keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  if (posts) text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

}  // namespace lockd
