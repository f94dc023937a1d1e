// An environment that a test makes up: variables and files, as settings see them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/environment.h"

namespace lockd::config {

struct FakeEnvironment {
  std::map<std::string, std::string> variables = {};
  std::map<std::string, FileText> files = {};
  unsigned cores = 4;
  std::uint64_t files_max = 1024;
  std::uint64_t memory = std::uint64_t{8} << 30;

  // Valid for as long as this is there.
  Environment environment() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : variables) names.push_back(name);
    const auto read = [this](const std::string& path) {
      const auto found = files.find(path);
      return found == files.end() ? FileText{.error = "No such file or directory", .missing = true}
                                  : found->second;
    };
    return {.variable =
                [this](const char* name) {
                  const auto found = variables.find(name);
                  return found == variables.end() ? nullptr : found->second.c_str();
                },
            .read_file = read,
            .read_config = read,
            .names = std::move(names),
            .cores = cores,
            .files_max = files_max,
            .memory = memory};
  }
};

}  // namespace lockd::config
