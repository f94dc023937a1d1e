// Reads one HTTP request, strictly: what two parsers could read differently is refused.
//
// Beast parses; this adds what it lets pass. Refused are both lengths at once, a length given twice
// or as a list, any transfer coding but `chunked`, bare line feeds, folded fields, control
// characters, chunk extensions, trailers, a Host that is missing or given twice. The head and the
// body have limits. A request that was refused leaves the connection at an unknown place: it must
// be closed.
//
//   RequestParser parser;
//   unread.remove_prefix(parser.take_in(unread));
//   if (parser.error()) ...              // refused
//   else if (parser.is_complete()) ...   // parser.request()
//   else if (parser.has_head()) ...      // all of it but the body
//
// A call of its own consumes the head, so that the caller can reject the request before the body
// arrives. A body takes memory as it arrives, not as it is announced.
//
// Used by one thread at a time, for one request. No I/O.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/http/http_request.h"

namespace lockd {

class RequestParser final : private boost::beast::http::basic_parser<true> {
 public:
  static constexpr std::size_t kHeadMax = std::size_t{16} * 1024;
  static constexpr std::size_t kBodyMax = std::size_t{1024} * 1024;

  RequestParser();

  // Takes what it can use, of the head or of the body, and returns how many bytes that were. To be
  // called again with what was left and more behind it, until the request is complete or refused.
  std::size_t take_in(std::string_view unread);
  // The body that follows is read and forgotten. Precondition: has_head().
  void drop_body() { drops_body_ = true; }

  // A request without a body is complete then.
  bool has_head() const { return basic_parser::is_header_done() && !error_; }
  bool is_complete() const { return basic_parser::is_done() && !error_; }
  const HttpError& error() const { return error_; }
  // How large its body is to be, once the head is there; the largest there may be when it is
  // chunked.
  std::uint64_t announced_size() const {
    return has_coding_ ? kBodyMax : basic_parser::content_length().value_or(0);
  }
  // The client waits for leave to send its body: true once.
  bool wants_continue();

  const HttpRequest& request() const { return request_; }
  // What of the body has come, as memory.
  std::size_t buffered() const { return request_.body.capacity(); }

 private:
  using Code = boost::beast::error_code;
  using View = boost::beast::string_view;
  using Field = boost::beast::http::field;

  // Of Beast.
  void on_request_impl(boost::beast::http::verb method, View name, View target, int version,
                       Code& code) override;
  void on_response_impl(int, View, int, Code&) override {}
  void on_field_impl(Field field, View name, View value, Code& code) override;
  void on_header_impl(Code& code) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}
  std::size_t on_body_impl(View body, Code& code) override;
  void on_chunk_header_impl(std::uint64_t size, View extensions, Code& code) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, View body, Code& code) override;
  void on_finish_impl(Code&) override {}

  bool find_head(std::string_view unread);
  std::string_view next_of_chunks(std::string_view unread);
  std::size_t feed(std::string_view bytes);
  void take_once(bool& seen, std::string& kept, std::string_view name, View value, Code& code);
  void check_transfer_coding(std::string_view value, Code& code);
  void refuse(Code& code, int status, std::string_view detail);
  void refuse(int status, std::string_view detail);

  HttpRequest request_;
  HttpError error_;
  std::size_t scanned_ = 0;    // of the head, for its end
  std::size_t head_size_ = 0;  // 0: not all there
  std::uint64_t chunk_left_ = 0;
  bool has_chunk_ = false;  // one has begun
  bool has_host_ = false;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool has_authorization_ = false;
  bool expects_continue_ = false;
  bool drops_body_ = false;
};

}  // namespace lockd
