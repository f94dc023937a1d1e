// The file of --config to values: TOML, flat, under the names of the flags.
//
//   max-locks = 100_000
//   auth-token-file = "/etc/lockd/token"
//
// Read by toml++ rather than by CLI11's reader, which takes a `#` within a string for a comment,
// and so would cut a token short, and knows no line numbers. For load_options(). A pure function:
// the text has been read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/settings/option_table.h"

namespace lockd {

struct ConfigFile {
  std::vector<Given> given;
  std::string error;  // one line, or empty
};

// `path` is for messages. A value is kept as text, so that the file takes what flags take: a number
// may be in quotes, and a boolean may be "yes".
ConfigFile read_config_file(Flavour flavour, const std::string& path, std::string_view text);

}  // namespace lockd
