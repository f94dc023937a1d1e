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

Every setting of `lockd`, its profiles, and `lockd-ha`. `lockd --help` and `man lockd` have the same text; the settings of `lockctl`, whose variables begin with `LOCKD_`, are [on its page](lockctl.md#settings).

## How settings are given

Each setting is a flag, an environment variable, and a name in a TOML file:

| | written | |
|---|---|---|
| flag | `--max-locks 5000`, `--max-locks=5000` | wins over variables. One dash or two |
| variable | `LOCKD_SERVER_MAX_LOCKS=5000` | wins over the file. An empty variable is unset |
| file | `max-locks = 5000` | the file that `--config` names |

The server also reads dflockd's own variables, such as `DFLOCKD_MAX_LOCKS`; a `LOCKD_SERVER_` variable wins over them. An unknown variable that begins with `LOCKD_SERVER_` is an error, so that a misspelt name is noticed. Kubernetes sets such variables for a Service called `lockd-server` (`LOCKD_SERVER_PORT=tcp://...`, `LOCKD_SERVER_SERVICE_HOST`): the server ignores them, with one warning in the log.

A boolean is `--debug`, `--no-debug` or `--debug=VALUE`, and its value true or false, 1 or 0, yes or no, on or off. Times are in seconds, and may have a fraction. A number may be spelt `10`, `10.0` or `1e1`. If a value, a name or the file is wrong, the server prints one line and does not start:

```console
$ lockd --max-locks 0; echo "status $?"
lockd: --max-locks from the command line is '0': it takes a whole number from 1 to 2147483647
status 1
$ lockd --max-lock 5000
lockd: unknown flag '--max-lock' (did you mean --max-locks?); --help lists them all
$ LOCKD_SERVER_MAX_LOCK=5000 lockd
lockd: unknown variable 'LOCKD_SERVER_MAX_LOCK' (did you mean LOCKD_SERVER_MAX_LOCKS?)
$ echo 'max-locks = 5000' > lockd.toml
$ LOCKD_SERVER_MAX_WAITERS=70 lockd --config lockd.toml --check-config | grep -E 'max-(locks|waiters)'
max-locks = 5000                        # line 1 of 'lockd.toml'
max-waiters = 70                        # LOCKD_SERVER_MAX_WAITERS
```

The output of `--check-config` is a file that gives the same settings, except for secrets, which it leaves out.
)";

constexpr std::string_view kProtectedMode = R"(
## Protected mode

A server without `--host`, auth token, `--access` and `--tls-client-ca` is in protected mode: it listens on every address and serves only loopback peers (`127.0.0.0/8` and `::1`), except for health calls over HTTP. A client on the same machine that connects to another of its addresses, or from a container, is refused like a client from elsewhere: with `error_auth` on the line port and 403 over HTTP. The log says, at most once a minute, how to admit such clients. Protected mode ends for both ports when an auth token, `--access` or `--tls-client-ca` is set; for the line port when `--host` is set; and for HTTP when `--http-addr` names a host, as in `0.0.0.0:8080`. [security.md](security.md) has what to set before that.
)";

std::string actions_text() {
  std::string text = "\n## Instead of serving\n\n| flag | |\n|---|---|\n";
  for (const config::Option& option : program(Profile::lockd).options) {
    if (option.kind != config::Option::Kind::action) continue;
    text += "| `--" + std::string(option.name) + "` | " + std::string(option.help) + " |\n";
  }
  return text;
}

constexpr std::string_view kProfiles = R"(
## Profiles

`dflockd` and `lockd-server` are links to `lockd`. The name by which the program is called chooses its profile; every setting of a profile can be set to another value.

| | `lockd` | `dflockd` | `lockd-server` |
|---|---|---|---|
| flags and variables | flags win | variables win, with a warning when they differ | flags win |
| the limit of an idle semaphore | is free again | stays until the key is forgotten | is free again |
| a try at a full queue | `timeout` | `error_max_waiters` | `timeout` |
)";

// A row for each setting whose default or name a profile changes.
std::string profiles_text() {
  std::string text(kProfiles);
  const auto dflockd = settings(Profile::dflockd);
  const auto lockd_server = settings(Profile::lockd_server);
  for (std::size_t i = 0; i < dflockd.size(); ++i) {
    const config::Option& option = settings(Profile::lockd)[i];
    const std::string_view of_dflockd = default_text(dflockd[i]);
    const std::string_view of_server = default_text(lockd_server[i]);
    if (of_dflockd == default_text(option) && of_server == default_text(option)) continue;
    const bool renamed = lockd_server[i].name != option.name;
    text += "| `--" + std::string(option.name) + "` | " + std::string(default_text(option)) +
            " | " + std::string(of_dflockd) + " | " + std::string(of_server) +
            (renamed ? ", also called `--" + std::string(lockd_server[i].name) + '`' : "") + " |\n";
  }
  return text;
}

std::string cluster_text() {
  const std::size_t common = settings(Profile::lockd).size();
  return config::markdown_groups(settings(Profile::lockd_ha).subspan(common)) +
         "\nOnly `lockd-ha` has these settings, besides all settings of `lockd`: [high "
         "availability](high_availability.md). With `--etcd` it keeps no journal. It also has the "
         "actions `--export DIRECTORY` and `--import DIRECTORY`: [backup, restore, "
         "moving](high_availability.md#backup-restore-moving).\n";
}

}  // namespace

std::string configuration_page() {
  return std::string(kBeginning) + profiles_text() +
         config::markdown_groups(settings(Profile::lockd)) + actions_text() + cluster_text() +
         std::string(kProtectedMode);
}

}  // namespace lockd
