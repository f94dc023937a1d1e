// docs/configuration.md: the table of settings as a page.
#include <string>
#include <string_view>

#include "config/pages.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

constexpr std::string_view kBeginning = R"(# Configuration

<!-- Made by server_pages from src/server/settings/option_table.cc. To change it: change the table, build,
     and copy build/release/made/configuration.md here. A test compares them. -->

Every setting of `dflockd`, `lockd-server` and `dflockd-ha`. `dflockd --help` and `man dflockd` say the same; the settings of `lockctl`, whose variables begin with `LOCKD_`, are [on its page](lockctl.md#settings). A `DFLOCKD_` variable configures a server and nothing else.

## How settings are given

Each setting is a flag, a variable of the environment, and a name in a TOML file:

| | written | |
|---|---|---|
| variable | `DFLOCKD_MAX_LOCKS=5000` | wins over the flag; when the two differ, a warning says which is used. An empty variable is unset |
| flag | `--max-locks 5000`, `--max-locks=5000` | wins over the file. One dash or two |
| file | `max-locks = 5000` | the file that `--config` names |

A boolean is `--debug`, `--no-debug` or `--debug=VALUE`, and its value true or false, 1 or 0, yes or no, on or off. Times are in seconds, and may have a fraction. A number may be spelt `10`, `10.0` or `1e1`. What is wrong with a value, a name or the file is said in one line, and the server does not start:

```console
$ dflockd --max-locks 0; echo "status $?"
dflockd: --max-locks from the command line is '0': it takes a whole number from 1 to 2147483647
status 1
$ dflockd --max-lock 5000
dflockd: unknown flag '--max-lock' (did you mean --max-locks?); --help lists them all
$ echo 'max-locks = 5000' > dflockd.toml
$ dflockd --config dflockd.toml --check-config; echo "status $?"
status 0
$ DFLOCKD_MAX_LOCKS=7000 dflockd --config dflockd.toml --print-config | grep max-locks
max-locks = 7000                        # DFLOCKD_MAX_LOCKS
```

What `--print-config` prints is a file that gives the same settings, but for secrets, which it leaves out.
)";

constexpr std::string_view kProtectedMode = R"(
## Protected mode

A server that nobody has told whom to serve listens on every address, and serves loopback addresses alone, but for health calls over HTTP: a client must come from `127.0.0.0/8` or `::1`. One on the same machine that comes by another of its addresses, or from a container, is refused like one from elsewhere. Who is refused is told `error_auth` on the line port and 403 over HTTP, and the log says, once a minute at most, how to let them in. Protected mode ends for both ports when an auth token or `--access` is set or clients must have certificates; for the line port when a `--host` is chosen, and for HTTP when `--http-addr` names a host, as in `0.0.0.0:8080`. [security.md](security.md) has what to set before that.
)";

std::string actions_text() {
  std::string text = "\n## Instead of serving\n\n| flag | |\n|---|---|\n";
  for (const config::Option& option : program(Flavour::dflockd).options) {
    if (option.kind != config::Option::Kind::action) continue;
    text += "| `--" + std::string(option.name) + "` | " + std::string(option.help) + " |\n";
  }
  return text;
}

// The settings that lockd-server has under another name or with another default.
std::string differences_text() {
  std::string text =
      "\n## Where lockd-server differs\n\n`lockd-server` is the same server for those who want "
      "HTTP "
      "alone. It has all settings of the tables above, except:\n\n"
      "| flag | variable | default | |\n|---|---|---|---|\n";
  auto plain = settings(Flavour::dflockd).begin();
  for (const config::Option& option : settings(Flavour::lockd_server)) {
    const config::Option& same = *plain++;
    if (same.name == option.name && default_text(same) == default_text(option)) continue;
    text += config::markdown_rows({&option, 1});
  }
  return text;
}

// What dflockd-ha has besides.
std::string cluster_text() {
  const std::size_t common = settings(Flavour::dflockd).size();
  return config::markdown_groups(settings(Flavour::dflockd_ha).subspan(common)) +
         "\nThese are settings of `dflockd-ha` alone, which has all of `dflockd`'s as well: "
         "[high availability](high_availability.md). Instead of serving it also takes `--export "
         "DIRECTORY` and `--import DIRECTORY`: [backup, restore, "
         "moving](high_availability.md#backup-restore-moving).\n";
}

}  // namespace

std::string configuration_page() {
  return std::string(kBeginning) + config::markdown_groups(settings(Flavour::dflockd)) +
         actions_text() + differences_text() + cluster_text() + std::string(kProtectedMode);
}

}  // namespace lockd
