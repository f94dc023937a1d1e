#include "lockctl/arguments.h"

#include <algorithm>

#include "lockctl/values.h"

namespace lockd::cli {

std::string rule_of(const Option& option) {
  switch (option.shape) {
    case Shape::toggle: return "true or false, 1 or 0, yes or no, on or off";
    case Shape::text: return "a text that is not empty";
    case Shape::whole:
      return "a whole number from " + std::to_string(option.min) + " to " +
             std::to_string(option.max);
    case Shape::seconds: return "seconds, from 0 to 9223372036, such as 5 or 0.5";
    case Shape::file: return "the name of a file";
    case Shape::directory: return "the name of a directory";
  }
  return {};
}

bool fits(const Option& option, std::string_view text) {
  switch (option.shape) {
    case Shape::toggle: return parse_bool(text).has_value();
    case Shape::text:
    case Shape::file:
    case Shape::directory: return !text.empty();
    case Shape::whole: return parse_whole(text, option.min, option.max).has_value();
    case Shape::seconds: return parse_seconds(text).has_value();
  }
  return false;
}

const std::pair<const Option*, std::string>* Arguments::last(std::string_view option) const {
  const auto found = std::find_if(given_.rbegin(), given_.rend(),
                                  [&](const auto& one) { return one.first->name == option; });
  return found == given_.rend() ? nullptr : &*found;
}

std::optional<std::string_view> Arguments::text(std::string_view option) const {
  const auto* const found = last(option);
  return found == nullptr ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::optional<std::string_view> Arguments::text(std::string_view option, Shape shape) const {
  const auto* const found = last(option);
  return found == nullptr || found->first->shape != shape ? std::nullopt : text(option);
}

std::vector<std::string_view> Arguments::all(std::string_view option) const {
  std::vector<std::string_view> values;
  for (const auto& [given, value] : given_) {
    if (given->name == option) values.emplace_back(value);
  }
  return values;
}

bool Arguments::has(std::string_view option) const {
  const auto* const found = last(option);
  if (found == nullptr) return false;
  return found->first->shape != Shape::toggle || parse_bool(found->second).value_or(false);
}

std::optional<std::uint64_t> Arguments::whole(std::string_view option) const {
  const auto value = text(option);
  return value ? parse_whole(*value, 0, UINT64_MAX) : std::nullopt;
}

std::optional<Duration> Arguments::seconds(std::string_view option) const {
  const auto value = text(option);
  return value ? parse_seconds(*value) : std::nullopt;
}

std::string Arguments::operand_or(std::size_t number, std::string_view otherwise) const {
  return std::string(number < operands_.size() ? operands_[number] : otherwise);
}

}  // namespace lockd::cli
