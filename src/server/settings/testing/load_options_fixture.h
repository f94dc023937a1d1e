// A machine that a test makes up, as load_options() sees it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/testing/fake_environment.h"
#include "server/settings/load_options.h"

namespace lockd {

struct FakeEnvironment {
  Profile profile = Profile::lockd;
  std::map<std::string, std::string> variables = {};
  std::map<std::string, config::FileText> files = {};
  unsigned cores = 4;
  std::uint64_t files_max = 1024;
  std::uint64_t memory = std::uint64_t{8} << 30;

  Loaded load(const std::vector<const char*>& arguments = {}) const {
    const config::FakeEnvironment machine{variables, files, cores, files_max, memory};
    return load_options(profile, arguments, machine.environment());
  }

  // By the file alone.
  Loaded load_file(const std::string& text) const {
    FakeEnvironment with_file = *this;
    with_file.files["f.toml"].text = text;
    return with_file.load({"--config=f.toml"});
  }
};

// What a setting is after loading.
inline std::string value_of(const Loaded& loaded, std::string_view name) {
  return loaded.settings.text(name);
}

inline std::string origin_of(const Loaded& loaded, std::string_view name) {
  return loaded.settings.value(name).origin.name;
}

}  // namespace lockd
