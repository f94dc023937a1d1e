#include "server/settings/option_text.h"

#include <algorithm>

#include "server/settings/command_line.h"

namespace lockd {
namespace {

constexpr std::size_t kOriginColumn = 40;
constexpr std::string_view kMargin = "      ";

std::string setting_text(Flavour flavour, const Setting& setting) {
  return "  " + flag_text(setting) + '\n' + wrapped(meaning_text(setting), kMargin) +
         wrapped(facts_text(flavour, setting), kMargin);
}

// A basic string of TOML.
std::string toml_string(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string entry_text(const Loaded& loaded, const Setting& setting, const Origin& origin) {
  const std::string name(setting.name);
  const std::string value = setting.print(loaded.options);
  std::string line;
  if (value.empty()) {
    line = "# " + name + ": " + std::string(setting.default_note);
  } else if (setting.secret) {
    line = "# " + name + ": hidden";
  } else if (setting.name == "config") {
    line = "# " + name + ": " + toml_string(value);  // not for a file to say
  } else {
    line = name + " = " + (setting.shape == Setting::Shape::text ? toml_string(value) : value);
  }
  line.resize(std::max(line.size() + 2, kOriginColumn), ' ');
  return line + "# " + origin.name + '\n';
}

std::string protection_text(const Options& options) {
  const auto say = [](bool on, bool guarded) {
    return !on ? "off" : guarded ? "protected mode, loopback peers only" : "open";
  };
  return std::string("\n# The line port: ") +
         say(options.port.has_value(), options.line_is_protected()) +
         "\n# HTTP: " + say(options.http_addr.has_value(), options.http_is_protected()) + '\n';
}

}  // namespace

std::string help_text(Flavour flavour) {
  std::string text = "Usage: " + std::string(program_name(flavour)) + " [FLAG...]\n\n" +
                     wrapped(about_settings(), "");
  std::string_view group;
  for (const Setting& setting : settings(flavour)) {
    if (setting.group != group) text += "\n" + std::string(setting.group) + ":\n";
    group = setting.group;
    text += setting_text(flavour, setting);
  }
  text += "\nInstead of serving:\n";
  for (const ActionFlag& flag : action_flags()) {
    text += "  --" + std::string(flag.name) + '\n' + wrapped(flag.help, kMargin);
  }
  return text;
}

std::string config_text(const Loaded& loaded) {
  std::string text;
  std::string_view group;
  auto origin = loaded.origins.begin();
  for (const Setting& setting : settings(loaded.flavour)) {
    if (setting.group != group) {
      text += (group.empty() ? "# " : "\n# ") + std::string(setting.group) + '\n';
    }
    group = setting.group;
    text += entry_text(loaded, setting, *origin++);
  }
  return text + protection_text(loaded.options);
}

std::string_view about_settings() {
  return "A server for locks and semaphores with leases and fences. Every setting is a flag, a "
         "variable of the environment and a name in the file of --config; the environment wins "
         "over flags, and flags over the file. A flag takes one or two dashes, and its value in "
         "the next word or after =. A boolean takes --flag, --no-flag or --flag=VALUE, where the "
         "value is true or false, 1 or 0, yes or no, on or off.";
}

std::string flag_text(const Setting& setting) {
  const std::string name(setting.name);
  if (setting.shape == Setting::Shape::boolean) return "--" + name + ", --no-" + name;
  return "--" + name + ' ' + std::string(setting.value);
}

std::string meaning_text(const Setting& setting) {
  std::string text(setting.help);
  if (setting.shape != Setting::Shape::boolean) text += " Takes " + std::string(setting.rule) + '.';
  return text;
}

std::string facts_text(Flavour flavour, const Setting& setting) {
  std::string text = "Default: " + default_text(flavour, setting) + ". Variable: ";
  text += setting.variables[0];
  if (setting.variables[1] != nullptr) text += std::string(" or ") + setting.variables[1];
  return text;
}

std::string wrapped(std::string_view text, std::string_view margin, std::size_t columns) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column == 0 || column + 1 + end > columns) {
      out += (column == 0 ? "" : "\n") + std::string(margin);
      column = margin.size();
    } else {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + '\n';
}

}  // namespace lockd
