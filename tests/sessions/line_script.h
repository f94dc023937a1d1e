// A conversation on one connection, written down: what is asked, and what is answered.
//
// Every script is played three ways, each against a server of its own: a request at a time, a byte
// at a time, and pipelined with a `ping` before and behind. The answers must be the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/options.h"

namespace lockd {

struct Exchange {
  // `$1` stands for the token of the first grant of the script, in the reply too.
  std::string request;
  // `<token>` stands for any. A `!` at the end: and then the connection is closed.
  std::string reply;
};

struct Script {
  std::string_view name;
  std::vector<Exchange> exchanges;
};

void play_every_way(const Script& script, const Options& options);

}  // namespace lockd
