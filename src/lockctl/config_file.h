// lockd.toml to values: TOML, flat, under the names of the options of the connection.
//
//   server = ["locks-1:6388", "locks-2:6388"]
//   token-file = "/home/ana/.config/lockd.token"
//
// A pure function: the text has been read.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockd::cli {

struct ConfigFile {
  struct Entry {
    std::string text;    // as someone would have typed it
    std::string origin;  // "line 3 of FILE"
  };

  std::map<std::string, Entry> entries;  // by the option's name
};

// Throws Failure, with the line at which something is wrong. `path` is for messages.
ConfigFile read_config_file(const std::string& path, std::string_view text);

}  // namespace lockd::cli
