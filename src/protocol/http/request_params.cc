#include "protocol/http/request_params.h"

#include <algorithm>
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

// Takes what Boost.JSON's parser finds in a body, and refuses all but one object. Of what lies in
// it the members are kept, the elements of their arrays, and the members of objects among those.
class RequestParamsBuilder {
 public:
  // As the parser wants them.
  static constexpr std::size_t max_object_size = RequestParams::kCountMax;
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = 256;
  static constexpr std::size_t max_string_size = std::size_t{1024} * 1024;

  using Code = boost::json::error_code;
  using View = boost::json::string_view;

  explicit RequestParamsBuilder(RequestParams& params) : params_(params) {}

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code& code) { return depth_ == 0 && has_object_ ? true : stop(code); }
  bool on_object_begin(Code& code);
  bool on_object_end(std::size_t, Code&);
  bool on_array_begin(Code& code);
  bool on_array_end(std::size_t, Code& code) { return on_object_end(0, code); }
  bool on_key_part(View part, std::size_t, Code&);
  bool on_key(View part, std::size_t, Code& code);
  bool on_string_part(View part, std::size_t, Code&);
  bool on_string(View part, std::size_t, Code& code);
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(std::int64_t number, View, Code& code);
  bool on_uint64(std::uint64_t, View, Code& code) { return take_other(code); }
  bool on_double(double, View text, Code& code);
  bool on_bool(bool truth, Code& code);
  bool on_null(Code& code) { return take_other(code); }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

  // What is wrong with a text that is JSON; empty when nothing is.
  std::string_view problem() const { return problem_; }

 private:
  using Kind = RequestParams::Kind;
  using Member = RequestParams::Member;

  // Within the array that is the body's latest member, and in no element of it.
  bool is_in_array() const { return depth_ == 2 && array_ != nullptr; }
  // Whose members are being read: the body's, or those of an object in such an array; null: what
  // is read lies deeper, and is looked over. Its member is refused as a whole.
  RequestParams* object();
  // Where the present value goes; null: nowhere. What is in an array goes nowhere but as a text or
  // an object, and spoils the array otherwise.
  Member* take(Kind kind);
  bool take_other(Code& code);
  void add_element(Kind kind);
  bool stop(Code& code, std::string_view problem = "the body must be a JSON object");

  RequestParams& params_;
  std::size_t depth_ = 0;
  bool has_object_ = false;
  Member* array_ = nullptr;           // the member that is being read, when it is an array
  RequestParams* element_ = nullptr;  // the object in it that is being read
  std::string part_;                  // of a name or a text that came in pieces
  std::string problem_;
};

bool RequestParamsBuilder::stop(Code& code, std::string_view problem) {
  if (problem_.empty()) problem_ = problem;
  code = boost::json::make_error_code(boost::json::error::not_object);
  return false;
}

RequestParams* RequestParamsBuilder::object() {
  if (depth_ == 1) return &params_;
  return depth_ == 3 ? element_ : nullptr;
}

void RequestParamsBuilder::add_element(Kind kind) {
  if (array_->elements++ == 0) array_->kind = kind;
  if (array_->kind != kind) array_->kind = Kind::other;
}

RequestParamsBuilder::Member* RequestParamsBuilder::take(Kind kind) {
  if (is_in_array()) add_element(kind == Kind::text ? Kind::texts : Kind::other);
  RequestParams* const object = this->object();
  if (object == nullptr) return nullptr;
  object->members_.back().kind = kind;
  return &object->members_.back();
}

bool RequestParamsBuilder::take_other(Code& code) {
  if (depth_ == 0) return stop(code);
  take(Kind::other);
  return true;
}

bool RequestParamsBuilder::on_object_begin(Code&) {
  if (is_in_array()) {
    add_element(Kind::objects);
    element_ =
        array_->elements <= RequestParams::kElementsMax ? &array_->objects.emplace_back() : nullptr;
    if (element_ != nullptr) {
      element_->path_ = array_->name + "[" + std::to_string(array_->elements - 1) + "].";
    }
  } else if (depth_ > 0) {
    take(Kind::other);
  }
  has_object_ = true;
  ++depth_;
  return true;
}

bool RequestParamsBuilder::on_object_end(std::size_t, Code&) {
  --depth_;
  if (depth_ == 2) element_ = nullptr;
  if (depth_ == 1) array_ = nullptr;
  return true;
}

bool RequestParamsBuilder::on_array_begin(Code& code) {
  if (depth_ == 0) return stop(code);
  Member* const member = take(Kind::other);
  if (depth_ == 1) array_ = member;
  ++depth_;
  return true;
}

bool RequestParamsBuilder::on_key_part(View part, std::size_t, Code&) {
  part_.append(part.data(), part.size());
  return true;
}

bool RequestParamsBuilder::on_key(View part, std::size_t, Code& code) {
  part_.append(part.data(), part.size());
  if (RequestParams* const object = this->object()) {
    if (object->has(part_)) return stop(code, "a member is given twice");
    if (!is_name(part_)) return stop(code, "a member has no proper name");
    object->members_.push_back({.name = part_});
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
  if (depth_ == 0) return stop(code);
  if (Member* const member = take(Kind::text)) {
    member->text = part_;
  } else if (is_in_array() && array_->elements <= RequestParams::kElementsMax) {
    array_->texts.push_back(part_);
  }
  part_.clear();
  return true;
}

bool RequestParamsBuilder::on_int64(std::int64_t number, View, Code& code) {
  if (depth_ == 0) return stop(code);
  if (Member* const member = take(Kind::number)) member->number = number;
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
  return take_other(code);
}

bool RequestParamsBuilder::on_bool(bool truth, Code& code) {
  if (depth_ == 0) return stop(code);
  if (Member* const member = take(Kind::truth)) member->truth = truth;
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
    // An error repeats the member's name, so the name must be printable.
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

bool RequestParams::has(std::string_view member) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& given) { return given.name == member; });
}

std::string_view RequestParams::name(std::string_view member) {
  const std::string_view value = text(member);
  if (!is_name(value)) {
    refuse(member, "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  return value;
}

std::string_view RequestParams::name_if_given(std::string_view member) {
  return has(member) ? name(member) : "";
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
    number = min;  // the caller may compute with it before it looks at error()
  }
  return number;
}

std::int64_t RequestParams::number(std::string_view member, std::int64_t min, std::int64_t max) {
  const auto value = number_if_given(member, min, max);
  if (!value) refuse(member, "is missing");
  return value.value_or(min);
}

RequestParams::Member* RequestParams::ask_array(std::string_view name, Kind kind,
                                                std::string_view what) {
  Member* const found = ask(name);
  const bool is_good = found != nullptr && found->kind == kind && found->elements <= kElementsMax;
  if (is_good) return found;
  refuse(name, found == nullptr ? "is missing" : what);
  return nullptr;
}

std::vector<std::string_view> RequestParams::names(std::string_view member) {
  const Member* const found = ask_array(member, Kind::texts, "must be an array of 1 to 64 names");
  if (found == nullptr) return {};
  for (const std::string& text : found->texts) {
    if (!is_name(text)) {
      refuse(member, "must be names: 1 to 256 bytes of UTF-8 without control characters each");
    }
  }
  return {found->texts.begin(), found->texts.end()};
}

std::span<RequestParams> RequestParams::objects(std::string_view member) {
  Member* const found = ask_array(member, Kind::objects, "must be an array of 1 to 64 objects");
  return found == nullptr ? std::span<RequestParams>() : std::span(found->objects);
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
  if (problem_.empty()) problem_ = path_ + std::string(member) + " " + std::string(problem);
}

HttpError RequestParams::error() const {
  std::string problem = problem_;
  for (const Member& member : members_) {
    if (problem.empty() && !member.asked) problem = "unknown member: " + path_ + member.name;
    for (const RequestParams& object : member.objects) {
      if (problem.empty()) problem = object.error().detail;
    }
  }
  if (problem.empty()) return {};
  return {400, "bad_request", std::move(problem)};
}

}  // namespace lockd
