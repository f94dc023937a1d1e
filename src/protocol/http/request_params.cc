#include "protocol/http/request_params.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/string_view.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace lockd {

// Takes what Boost.JSON's parser finds in a body, and refuses all but one flat object.
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

bool RequestParamsBuilder::stop(Code& code, std::string_view problem) {
  if (problem_.empty()) problem_ = problem;
  code = boost::json::make_error_code(boost::json::error::not_object);
  return false;
}

// What lies deeper than the object's own members is looked over: its member is refused as a whole.
bool RequestParamsBuilder::take(RequestParams::Kind kind, Code& code) {
  if (depth_ == 0) return stop(code);
  if (depth_ == 1) members_.members_.back().kind = kind;
  return true;
}

bool RequestParamsBuilder::on_object_begin(Code& code) {
  if (depth_ > 0 && !take(RequestParams::Kind::other, code)) return false;
  has_object_ = true;
  ++depth_;
  return true;
}

bool RequestParamsBuilder::on_object_end(std::size_t, Code&) {
  --depth_;
  return true;
}

bool RequestParamsBuilder::on_array_begin(Code& code) {
  if (!take(RequestParams::Kind::other, code)) return false;
  ++depth_;
  return true;
}

bool RequestParamsBuilder::on_array_end(std::size_t, Code&) {
  --depth_;
  return true;
}

bool RequestParamsBuilder::on_key_part(View part, std::size_t, Code&) {
  part_.append(part.data(), part.size());
  return true;
}

bool RequestParamsBuilder::on_key(View part, std::size_t, Code& code) {
  part_.append(part.data(), part.size());
  if (depth_ == 1) {
    for (const RequestParams::Member& member : members_.members_) {
      if (member.name == part_) return stop(code, "a member is given twice");
    }
    if (!is_name(part_)) return stop(code, "a member has no proper name");
    members_.members_.push_back({.name = part_});
  }
  part_.clear();
  return true;
}

bool RequestParamsBuilder::on_string_part(View part, std::size_t, Code&) {
  part_.append(part.data(), part.size());
  return true;
}

bool RequestParamsBuilder::on_string(View part, std::size_t, Code& code) {
  part_.append(part.data(), part.size());
  if (!take(RequestParams::Kind::text, code)) return false;
  if (depth_ == 1) members_.members_.back().text = part_;
  part_.clear();
  return true;
}

bool RequestParamsBuilder::on_int64(std::int64_t number, View, Code& code) {
  if (!take(RequestParams::Kind::number, code)) return false;
  if (depth_ == 1) members_.members_.back().number = number;
  return true;
}

// JSON has one kind of number: 5.0 and 5e3 are whole, too. The parser's own value is not always the
// nearest, so the text is read again; the body is parsed in one piece, so that is all of it.
bool RequestParamsBuilder::on_double(double, View text, Code& code) {
  constexpr double kExactMax = 9'007'199'254'740'992;  // 2^53
  double number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == end &&
                        std::abs(number) <= kExactMax && std::trunc(number) == number;
  if (is_whole) return on_int64(static_cast<std::int64_t>(number), text, code);
  return take(RequestParams::Kind::other, code);
}

bool RequestParamsBuilder::on_bool(bool truth, Code& code) {
  if (!take(RequestParams::Kind::truth, code)) return false;
  if (depth_ == 1) members_.members_.back().truth = truth;
  return true;
}

RequestParams RequestParams::of_json(std::string_view body) {
  RequestParams params;
  boost::json::basic_parser<RequestParamsBuilder> parser(boost::json::parse_options(), params);
  boost::json::error_code code;
  const std::size_t taken = parser.write_some(false, body.data(), body.size(), code);
  const std::string_view problem = parser.handler().problem();
  if (!problem.empty()) {
    params.problem_ = problem;
  } else if (code || taken < body.size()) {
    params.problem_ = "the body is not JSON";
    if (code) params.problem_ += ": " + code.message();
  }
  return params;
}

RequestParams RequestParams::of_query(
    const std::vector<std::pair<std::string, std::string>>& query) {
  RequestParams params;
  params.from_query_ = true;
  for (const auto& [name, value] : query) {
    // What is wrong is told by its name: it must be one that can be said again.
    if (!is_name(name)) params.refuse("a member", "has no proper name");
    if (params.ask(name) != nullptr) params.refuse(name, "is given twice");
    if (params.members_.size() == kCountMax) params.refuse(name, "is one too many");
    if (!params.problem_.empty()) break;
    params.members_.push_back({.name = name, .kind = Kind::text, .text = value});
  }
  for (Member& member : params.members_) member.asked = false;
  return params;
}

RequestParams::Member* RequestParams::ask(std::string_view name) {
  for (Member& member : members_) {
    if (member.name != name) continue;
    member.asked = true;
    return &member;
  }
  return nullptr;
}

std::string_view RequestParams::name(std::string_view member) {
  const std::string_view value = text(member);
  if (!is_name(value)) {
    refuse(member, "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  return value;
}

std::string_view RequestParams::text(std::string_view member) {
  const auto value = text_if_given(member);
  if (!value) refuse(member, "is missing");
  return value.value_or(std::string_view());
}

std::optional<std::string_view> RequestParams::text_if_given(std::string_view member) {
  const Member* found = ask(member);
  if (found == nullptr) return std::nullopt;
  if (found->kind != Kind::text) refuse(member, "must be a text");
  return found->text;
}

std::optional<std::int64_t> RequestParams::number_if_given(std::string_view member,
                                                           std::int64_t min, std::int64_t max) {
  const Member* found = ask(member);
  if (found == nullptr) return std::nullopt;
  std::int64_t number = found->number;
  bool is_number = found->kind == Kind::number;
  if (from_query_) {
    const char* end = found->text.data() + found->text.size();
    const auto parsed = std::from_chars(found->text.data(), end, number);
    is_number = parsed.ec == std::errc() && parsed.ptr == end;
  }
  if (!is_number || number < min || number > max) {
    refuse(member,
           "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return number;
}

std::int64_t RequestParams::number(std::string_view member, std::int64_t min, std::int64_t max) {
  const auto value = number_if_given(member, min, max);
  if (!value) refuse(member, "is missing");
  return value.value_or(min);
}

bool RequestParams::truth(std::string_view member) {
  const Member* found = ask(member);
  if (found == nullptr) return false;
  if (found->kind == Kind::truth) return found->truth;
  if (from_query_ && (found->text == "true" || found->text == "false"))
    return found->text == "true";
  refuse(member, "must be true or false");
  return false;
}

void RequestParams::refuse(std::string_view member, std::string_view problem) {
  if (problem_.empty()) problem_ = std::string(member) + " " + std::string(problem);
}

HttpError RequestParams::error() const {
  std::string problem = problem_;
  for (const Member& member : members_) {
    if (problem.empty() && !member.asked) problem = "unknown member: " + member.name;
  }
  if (problem.empty()) return {};
  return {400, "bad_request", std::move(problem)};
}

}  // namespace lockd
