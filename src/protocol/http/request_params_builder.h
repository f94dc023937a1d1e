// Takes what Boost.JSON's parser finds in a body, and refuses all but one flat object. For
// request_params.cc alone.
#pragma once

#include <boost/json/error.hpp>
#include <boost/json/string_view.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/http/request_params.h"

namespace lockd {

class RequestParamsBuilder {
 public:
  // As the parser wants them.
  static constexpr std::size_t max_object_size = RequestParams::kCountMax;
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = 256;
  static constexpr std::size_t max_string_size = std::size_t{1024} * 1024;

  using Code = boost::json::error_code;
  using View = boost::json::string_view;

  explicit RequestParamsBuilder(RequestParams& params) : members_(params) {}

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code& code) { return depth_ == 0 && has_object_ ? true : stop(code); }
  bool on_object_begin(Code& code);
  bool on_object_end(std::size_t, Code&);
  bool on_array_begin(Code& code);
  bool on_array_end(std::size_t, Code&);
  bool on_key_part(View part, std::size_t, Code&);
  bool on_key(View part, std::size_t, Code& code);
  bool on_string_part(View part, std::size_t, Code&);
  bool on_string(View part, std::size_t, Code& code);
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(std::int64_t number, View, Code& code);
  bool on_uint64(std::uint64_t, View, Code& code) { return take(RequestParams::Kind::other, code); }
  bool on_double(double, View text, Code& code);
  bool on_bool(bool truth, Code& code);
  bool on_null(Code& code) { return take(RequestParams::Kind::other, code); }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

  // What is wrong with a text that is JSON; empty when nothing is.
  std::string_view problem() const { return problem_; }

 private:
  // Marks the present member; false, and the end, when there is none: the body is no object.
  bool take(RequestParams::Kind kind, Code& code);
  bool stop(Code& code, std::string_view problem = "the body must be a JSON object");

  RequestParams& members_;
  std::size_t depth_ = 0;
  bool has_object_ = false;
  std::string part_;  // of a name or a text that came in pieces
  std::string problem_;
};

}  // namespace lockd
