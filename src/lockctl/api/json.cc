#include "lockctl/api/json.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cmath>

#include "lockctl/output/failure.h"

namespace lockd::cli {

namespace json = boost::json;

json::value parse_json(std::string_view text, std::string_view who) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error) throw Failure(kExitProtocol, std::string(who) + " did not answer in JSON");
  return value;
}

const json::value* member(const json::value& object, std::string_view name) {
  const json::object* const members = object.if_object();
  return members == nullptr ? nullptr : members->if_contains({name.data(), name.size()});
}

std::string text_of(const json::value& object, std::string_view name) {
  const json::value* const value = member(object, name);
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::uint64_t number_of(const json::value& object, std::string_view name) {
  const json::value* const value = member(object, name);
  if (value == nullptr) return 0;
  if (const auto* number = value->if_uint64()) return *number;
  if (const auto* number = value->if_int64(); number != nullptr && *number > 0) {
    return static_cast<std::uint64_t>(*number);
  }
  return 0;
}

bool has(const json::value& object, std::string_view name) {
  return member(object, name) != nullptr;
}

bool truth_of(const json::value& object, std::string_view name) {
  const json::value* const value = member(object, name);
  const bool* const truth = value == nullptr ? nullptr : value->if_bool();
  return truth != nullptr && *truth;
}

Duration ms_of(const json::value& object, std::string_view name) {
  constexpr std::uint64_t kMost = static_cast<std::uint64_t>(kDurationMax.count()) / 1'000'000;
  const std::uint64_t ms = std::min(number_of(object, name), kMost);
  return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
}

Duration seconds_of(const json::value& object, std::string_view name) {
  const json::value* const value = member(object, name);
  double seconds = static_cast<double>(number_of(object, name));
  if (value != nullptr && value->if_double() != nullptr) seconds = *value->if_double();
  if (!(seconds > 0)) return {};
  return Duration(static_cast<std::int64_t>(std::min(seconds, 9.2e9) * 1e9));
}

const json::array& array_of(const json::value& object, std::string_view name) {
  static const json::array empty;
  const json::value* const value = member(object, name);
  const json::array* const array = value == nullptr ? nullptr : value->if_array();
  return array == nullptr ? empty : *array;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace lockd::cli
