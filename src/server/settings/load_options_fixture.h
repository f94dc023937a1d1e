// A machine that a test makes up: variables and files, as load_options() sees them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/load_options.h"

namespace lockd {

struct FakeEnvironment {
  Flavour flavour = Flavour::dflockd;
  std::map<std::string, std::string> variables = {};
  std::map<std::string, FileText> files = {};
  unsigned cores = 4;

  Environment environment() const {
    return {.variable =
                [this](const char* name) {
                  const auto found = variables.find(name);
                  return found == variables.end() ? nullptr : found->second.c_str();
                },
            .read_file =
                [this](const std::string& path) {
                  const auto found = files.find(path);
                  return found == files.end() ? FileText{.error = "No such file or directory"}
                                              : found->second;
                },
            .cores = cores};
  }

  Loaded load(const std::vector<const char*>& arguments = {}) const {
    return load_options(flavour, arguments, environment());
  }

  // By the file alone.
  Loaded load_file(const std::string& text) const {
    FakeEnvironment with_file = *this;
    with_file.files["f.toml"].text = text;
    return with_file.load({"--config=f.toml"});
  }
};

// What a setting is after loading, as its row prints it.
inline std::string value_of(const Loaded& loaded, std::string_view name) {
  return find_setting(loaded.flavour, name)->print(loaded.options);
}

inline std::string origin_of(const Loaded& loaded, std::string_view name) {
  const Setting* setting = find_setting(loaded.flavour, name);
  const auto row = setting - settings(loaded.flavour).data();
  return loaded.origins.at(static_cast<std::size_t>(row)).name;
}

}  // namespace lockd
