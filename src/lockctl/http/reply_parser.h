// Reads the reply to one HTTP request, as it comes.
//
// Beast parses; whatever of the body has come is passed on at once, so that a stream without an end
// can be followed. For one thread and one reply. No I/O.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockd::cli {

class ReplyParser final : private boost::beast::http::basic_parser<false> {
 public:
  using OnBody = std::function<void(unsigned status, std::string_view bytes)>;

  // A body may be this large, unless it has no limit.
  ReplyParser(OnBody on_body, std::optional<std::uint64_t> size_max);

  // Takes away from `unread` what it can use. Throws Failure when that is no reply.
  void take_in(std::string& unread);
  // The peer sends no more. Whether that makes it a whole reply.
  bool end();

  bool is_done() const { return basic_parser::is_done(); }
  bool has_head() const { return is_header_done(); }
  // Precondition: has_head().
  unsigned status() const { return status_; }

 private:
  using Code = boost::beast::error_code;
  using View = boost::beast::string_view;

  // Of Beast.
  void on_request_impl(boost::beast::http::verb, View, View, int, Code&) override {}
  void on_response_impl(int status, View, int, Code&) override {
    status_ = static_cast<unsigned>(status);
  }
  void on_field_impl(boost::beast::http::field, View, View, Code&) override {}
  void on_header_impl(Code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}
  std::size_t on_body_impl(View body, Code&) override;
  void on_chunk_header_impl(std::uint64_t, View, Code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View body, Code& code) override {
    return on_body_impl(body, code);
  }
  void on_finish_impl(Code&) override {}

  const OnBody on_body_;
  unsigned status_ = 0;
};

}  // namespace lockd::cli
