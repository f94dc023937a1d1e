// How a row of the option table is written: one function for each kind of setting.
//
// For option_table.cc alone. A row is a constant: its functions know their field of Options and
// their parser at compile time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/settings/option_table.h"
#include "server/settings/option_values.h"

namespace lockd::rows {

using Variables = std::array<const char*, 2>;

// One row, where `kParse` makes an optional value for `kField` out of text.
template <auto kField, auto kParse>
constexpr Setting row(std::string_view name, Variables variables, std::string_view group) {
  Setting setting{.name = name, .variables = variables, .group = group};
  setting.assign = [](Options& options, std::string_view text) {
    auto value = kParse(text);
    if (value) options.*kField = std::move(*value);
    return value.has_value();
  };
  setting.print = [](const Options& options) { return print_value(options.*kField); };
  return setting;
}

template <auto kField>
constexpr Setting boolean(std::string_view name, Variables variables, std::string_view group,
                          std::string_view help) {
  Setting setting = row<kField, parse_bool>(name, variables, group);
  setting.shape = Setting::Shape::boolean;
  setting.value = "BOOL";
  setting.rule = "true or false, 1 or 0, yes or no, on or off";
  setting.help = help;
  return setting;
}

template <typename Number, Number kMin, Number kMax>
std::optional<Number> parse_number(std::string_view text) {
  const auto number = parse_whole(text, kMin, kMax);
  if (!number) return std::nullopt;
  return static_cast<Number>(*number);
}

template <auto kField, typename Number, Number kMin, Number kMax>
constexpr Setting number(std::string_view name, Variables variables, std::string_view group,
                         std::string_view rule, std::string_view help) {
  Setting setting = row<kField, parse_number<Number, kMin, kMax>>(name, variables, group);
  setting.shape = Setting::Shape::number;
  setting.value = "N";
  setting.rule = rule;
  setting.help = help;
  return setting;
}

// A count of something, where 0 is no limit.
template <auto kField>
constexpr Setting limit(std::string_view name, Variables variables, std::string_view group,
                        std::string_view help) {
  return number<kField, std::uint32_t, 0, UINT32_MAX>(
      name, variables, group, "a whole number from 0 to 4294967295, where 0 is no limit", help);
}

enum class Zero : std::uint8_t { refused, accepted };

template <Zero kZero>
std::optional<Duration> parse_time(std::string_view text) {
  const auto time = parse_seconds(text);
  return kZero == Zero::refused && time == Duration::zero() ? std::nullopt : time;
}

template <auto kField, Zero kZero>
constexpr Setting seconds(std::string_view name, Variables variables, std::string_view group,
                          std::string_view help) {
  Setting setting = row<kField, parse_time<kZero>>(name, variables, group);
  setting.shape = Setting::Shape::seconds;
  setting.value = "SECONDS";
  setting.rule = kZero == Zero::refused
                     ? "seconds, more than 0 and at most 9223372036, such as 5 or 0.5"
                     : "seconds, from 0 to 9223372036, such as 5 or 0.5";
  setting.help = help;
  return setting;
}

template <auto kField, auto kParse>
constexpr Setting text(std::string_view name, Variables variables, std::string_view group,
                       std::string_view value, std::string_view rule, std::string_view help) {
  Setting setting = row<kField, kParse>(name, variables, group);
  setting.value = value;
  setting.rule = rule;
  setting.help = help;
  return setting;
}

template <auto kField>
constexpr Setting file(std::string_view name, Variables variables, std::string_view group,
                       std::string_view help) {
  return text<kField, parse_path>(name, variables, group, "FILE", "the name of a file", help);
}

constexpr Setting with_default(Setting setting, std::string_view note) {
  setting.default_note = note;
  return setting;
}

constexpr Setting with_secret(Setting setting) {
  setting.secret = true;
  return setting;
}

constexpr Setting with_print(Setting setting, std::string (*print)(const Options&)) {
  setting.print = print;
  return setting;
}

}  // namespace lockd::rows
