#include "server/settings/option_pages.h"

#include <string_view>

#include "base/roff.h"
#include "server/settings/command_line.h"
#include "server/settings/option_table.h"
#include "server/settings/option_text.h"
#include "server/version.h"

namespace lockd {
namespace {

using roff::section;
using roff::tagged;

std::string_view summary(Flavour flavour) {
  switch (flavour) {
    case Flavour::dflockd: return "server for locks and semaphores, by lines and HTTP";
    case Flavour::lockd_server: return "server for reservations, by HTTP";
    case Flavour::dflockd_ha: return "server for locks and semaphores, several on one etcd";
  }
  return {};
}

std::string options_text(Flavour flavour) {
  std::string text;
  std::string_view group;
  for (const Setting& setting : settings(flavour)) {
    if (setting.group != group) text += section(setting.group);
    group = setting.group;
    text += tagged(flag_text(setting),
                   meaning_text(setting) + '\n' + facts_text(flavour, setting) + '.');
  }
  text += section("Instead of serving");
  for (const ActionFlag& flag : action_flags()) {
    text += tagged("--" + std::string(flag.name), flag.help);
  }
  return text;
}

std::string signals_text() {
  return section("Signals") +
         tagged("SIGTERM, SIGINT",
                "Take no new connections and grant no more; stop when all clients are gone, or "
                "after --shutdown-timeout, or at a second signal.") +
         tagged("SIGHUP", "Read certificates again. Connections keep those they began with.");
}

std::string exits_text() {
  return section("Exit status") + tagged("0", "It was asked to stop, and did.") +
         tagged("1",
                "A setting is wrong, a port is taken, a journal is damaged or has failed. One line "
                "on standard error says which.");
}

std::string files_text(Flavour flavour) {
  if (flavour == Flavour::lockd_server) return "";
  const std::string name(program_name(flavour));
  std::string text =
      section("Files") +
      tagged("/etc/lockd/" + name + ".toml", "The settings of the service, " + name + ".service.");
  if (flavour == Flavour::dflockd) {
    text += tagged("/var/lib/lockd", "Its journal: what is held, across restarts.");
  }
  return text;
}

std::string examples_text(Flavour flavour) {
  std::string text = section("Examples");
  if (flavour == Flavour::dflockd) {
    return text +
           roff::example("For clients on this machine, by lines and by HTTP:",
                         "dflockd --http-addr :8080") +
           roff::example("For all who know the token, with locks that outlive the server:",
                         "dflockd --auth-token-file token --wal locks");
  }
  if (flavour == Flavour::dflockd_ha) {
    return text + roff::example(
                      "One of several that share an etcd of three members:",
                      "dflockd-ha --etcd 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 \\\n"
                      "  --host 0.0.0.0 --auth-token-file token --advertise-addr 10.0.0.11:6388");
  }
  return text +
         roff::example("Durable, with metrics:", "lockd-server -addr :8080 -wal locks -metrics");
}

std::string see_also(Flavour flavour) {
  const char* const other = flavour == Flavour::dflockd ? "lockd\\-server" : "dflockd";
  return section("See also") + ".BR " + other + " (1),\n.BR lockctl (1)\n";
}

// As it would stand in the file, where a default that is no value is a word to replace.
std::string entry_text(Flavour flavour, const Setting& setting) {
  const std::string value = setting.default_note.empty() ? setting.print(default_options(flavour))
                                                         : std::string(setting.value);
  const char* const quote = setting.shape == Setting::Shape::text ? "\"" : "";
  return '#' + std::string(setting.name) + " = " + quote + value + quote + '\n';
}

}  // namespace

std::string man_page(Flavour flavour) {
  const std::string name(program_name(flavour));
  return roff::title(name, "lockd " + std::string(kVersion)) + section("Name") +
         roff::escaped(name + " - " + std::string(summary(flavour))) + '\n' + section("Synopsis") +
         roff::escaped(name + " [FLAG...]") + '\n' + section("Description") +
         roff::paragraphs(about_settings()) + options_text(flavour) + signals_text() +
         exits_text() + files_text(flavour) + examples_text(flavour) + see_also(flavour);
}

std::string starting_config(Flavour flavour) {
  const std::string name(program_name(flavour));
  std::string text =
      wrapped("Settings of " + name +
                  ". What stands here after a single # is the default, or in capitals what to put "
                  "there. Flags "
                  "and variables of the environment win over this file. To try it: " +
                  name + " --config FILE --check-config",
              "## ");
  std::string_view group;
  for (const Setting& setting : settings(flavour)) {
    if (setting.name == "config") continue;  // not for a file to say
    if (setting.group != group) text += "\n\n## --- " + std::string(setting.group) + " ---\n";
    group = setting.group;
    text += '\n' + wrapped(meaning_text(setting), "## ") +
            wrapped(facts_text(flavour, setting), "## ") + entry_text(flavour, setting);
  }
  return text;
}

}  // namespace lockd
