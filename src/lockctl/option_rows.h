// How an option's row in the table of commands is written: one function for each kind.
//
// For command_table.cc alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockctl/commands/command_table.h"

namespace lockd::cli::rows {

constexpr Option toggle(std::string_view name, char letter, std::string_view help,
                        std::string_view alias = {}) {
  return {.name = name, .letter = letter, .alias = alias, .help = help};
}

constexpr Option text(std::string_view name, char letter, std::string_view value,
                      std::string_view help, Shape shape = Shape::text,
                      std::string_view alias = {}) {
  return {
      .name = name, .letter = letter, .alias = alias, .shape = shape, .value = value, .help = help};
}

constexpr Option whole(std::string_view name, char letter, std::string_view value,
                       std::uint64_t min, std::uint64_t max, std::string_view help) {
  Option option = text(name, letter, value, help, Shape::whole);
  option.min = min;
  option.max = max;
  return option;
}

// What can also be said by a variable, and in the file.
constexpr Option setting(std::string_view name, char letter, Shape shape, std::string_view value,
                         std::string_view variable, std::string_view help,
                         std::string_view alias = {}) {
  Option option = text(name, letter, value, help, shape, alias);
  option.variable = variable;
  return option;
}

constexpr Option repeated(Option option) {
  option.repeats = true;
  return option;
}

constexpr Option secret(Option option) {
  option.secret = true;
  return option;
}

}  // namespace lockd::cli::rows
