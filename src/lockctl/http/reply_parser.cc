#include "lockctl/http/reply_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "lockctl/output/failure.h"

namespace lockd::cli {

namespace http = boost::beast::http;

ReplyParser::ReplyParser(OnBody on_body, std::optional<std::uint64_t> size_max)
    : on_body_(std::move(on_body)) {
  eager(true);
  body_limit(boost::none);
  if (size_max) body_limit(*size_max);
}

void ReplyParser::take_in(std::string& unread) {
  std::size_t taken = 0;
  while (taken < unread.size() && !is_done()) {
    Code code;
    const std::size_t size =
        put(boost::asio::buffer(unread.data() + taken, unread.size() - taken), code);
    if (code && code != http::error::need_more) {
      throw Failure(kExitProtocol, "what the server answers is no reply: " + code.message());
    }
    if (size == 0) break;
    taken += size;
  }
  unread.erase(0, taken);
}

bool ReplyParser::end() {
  if (!has_head() || is_done()) return is_done();
  Code code;
  put_eof(code);
  return !code;
}

std::size_t ReplyParser::on_body_impl(View body, Code&) {
  on_body_(status_, {body.data(), body.size()});
  return body.size();
}

}  // namespace lockd::cli
