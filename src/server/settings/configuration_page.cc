// docs/configuration.md: the table of settings as a page.
#include <span>
#include <string>
#include <string_view>

#include "server/settings/command_line.h"
#include "server/settings/option_pages.h"
#include "server/settings/option_table.h"
#include "server/settings/option_text.h"

namespace lockd {
namespace {

constexpr std::string_view kBeginning = R"(# Configuration

<!-- Made by server_pages from src/server/settings/option_table.cc. To change it: change the table, build,
     and copy build/release/made/configuration.md here. A test compares them. -->

Every setting of `dflockd`, `lockd-server` and `dflockd-ha`. `dflockd --help` and `man dflockd` say the same; the settings of `lockctl` are [on its page](lockctl.md#settings).

## How settings are given

Each setting is a flag, a variable of the environment, and a name in a TOML file:

| | written | |
|---|---|---|
| variable | `DFLOCKD_MAX_LOCKS=5000` | wins over the flag; when the two differ, a warning says which is used. An empty variable is unset |
| flag | `--max-locks 5000`, `--max-locks=5000` | wins over the file. One dash or two |
| file | `max-locks = 5000` | the file that `--config` names |

A boolean is `--debug`, `--no-debug` or `--debug=VALUE`, and its value true or false, 1 or 0, yes or no, on or off. Times are in seconds, and may have a fraction. What is wrong with a value, a name or the file is said in one line, and the server does not start:

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

A server that nobody has told whom to serve listens on every address, and serves this machine alone. Others are refused, with `error_auth` on the line port and 403 over HTTP, and the log says, once a minute at most, how to let them in. It ends for both ports when a token is set or clients must have certificates; for the line port when a `--host` is chosen, and for HTTP when `--http-addr` names a host, as in `0.0.0.0:8080`. [security.md](security.md) has what to set before that.
)";

// A cell must not end early, nor be taken for emphasis.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*') out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) { return '`' + std::string(text) + '`'; }

std::string variables_text(const Setting& setting) {
  std::string text = code(setting.variables[0]);
  if (setting.variables[1] != nullptr) text += ", " + code(setting.variables[1]);
  return text;
}

std::string flags_text(const Setting& setting) {
  const std::string name = "--" + std::string(setting.name);
  if (setting.shape == Setting::Shape::boolean) {
    return code(name) + ", " + code("--no-" + std::string(setting.name));
  }
  return code(name + ' ' + std::string(setting.value));
}

std::string row(Flavour flavour, const Setting& setting) {
  return "| " + flags_text(setting) + " | " + variables_text(setting) + " | " +
         cell(default_text(flavour, setting)) + " | " + cell(meaning_text(setting)) + " |\n";
}

std::string groups_text(Flavour flavour, std::span<const Setting> some) {
  std::string text;
  std::string_view group;
  for (const Setting& setting : some) {
    if (setting.group != group) {
      text += "\n## " + std::string(setting.group) +
              "\n\n| flag | variable | default | |\n|---|---|---|---|\n";
    }
    group = setting.group;
    text += row(flavour, setting);
  }
  return text;
}

std::string actions_text() {
  std::string text = "\n## Instead of serving\n\n| flag | |\n|---|---|\n";
  for (const ActionFlag& flag : action_flags()) {
    text += "| " + code("--" + std::string(flag.name)) + " | " + cell(flag.help) + " |\n";
  }
  return text;
}

// The settings that `other` has under another name or with another default.
std::string differences_text(Flavour flavour, Flavour other) {
  const std::string name = code(program_name(other));
  std::string text = "\n## Where lockd-server differs\n\n" + name +
                     " is the same server for those who want HTTP alone. It has all settings of "
                     "the tables above, except:\n\n"
                     "| flag | variable | default | |\n|---|---|---|---|\n";
  auto plain = settings(flavour).begin();
  for (const Setting& setting : settings(other)) {
    const Setting& same = *plain++;
    if (same.name == setting.name && default_text(flavour, same) == default_text(other, setting)) {
      continue;
    }
    text += row(other, setting);
  }
  return text;
}

// What dflockd-ha has besides.
std::string cluster_text() {
  const std::size_t common = settings(Flavour::dflockd).size();
  return groups_text(Flavour::dflockd_ha, settings(Flavour::dflockd_ha).subspan(common)) +
         "\nThese are settings of `dflockd-ha` alone, which has all of `dflockd`'s as well: "
         "[high availability](high_availability.md).\n";
}

}  // namespace

std::string configuration_page() {
  return std::string(kBeginning) + groups_text(Flavour::dflockd, settings(Flavour::dflockd)) +
         actions_text() + differences_text(Flavour::dflockd, Flavour::lockd_server) +
         cluster_text() + std::string(kProtectedMode);
}

}  // namespace lockd
