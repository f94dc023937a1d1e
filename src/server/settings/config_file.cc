#include "server/settings/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "server/settings/option_values.h"

namespace lockd {
namespace {

// The parser quotes what it saw, line ends too.
std::string in_one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

std::string line_name(const toml::source_region& source, const std::string& path) {
  return "line " + std::to_string(source.begin.line) + " of " + in_quotes(path);
}

// As someone would have written it in a flag; none for a list, a table or a date.
std::optional<std::string> value_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return print_value(truth->get());
  if (const auto* number = node.as_floating_point()) {
    std::array<char, 512> digits;  // the largest has 309 of them, and the smallest as many zeros
    const auto end =
        std::to_chars(digits.begin(), digits.end(), number->get(), std::chars_format::fixed).ptr;
    return std::string(digits.begin(), end);
  }
  return std::nullopt;
}

std::string unknown_name(Flavour flavour, std::string_view name) {
  const std::string_view nearest = nearest_setting(flavour, name);
  return "unknown setting " + in_quotes(name) +
         (nearest.empty() ? "" : " (did you mean " + std::string(nearest) + "?)");
}

// What is wrong with one entry, or empty; what is right is added to `given`.
std::string read_entry(Flavour flavour, std::string_view name, const toml::node& node,
                       Origin origin, std::vector<Given>& given) {
  const Setting* setting = find_setting(flavour, name);
  if (setting == nullptr) return unknown_name(flavour, name);
  if (setting->name == "config") return "'config' cannot be set in the file itself";
  // A token or a file's name may look like a number, and would not be read as it was written.
  if (setting->shape == Setting::Shape::text && !node.is_string()) {
    return std::string(name) + " is text, and needs quotes around it";
  }
  const auto text = value_text(node);
  if (!text) return std::string(name) + " takes " + std::string(setting->rule);
  // TOML refuses a name twice, but knows nothing of an alias.
  if (std::any_of(given.begin(), given.end(),
                  [&](const Given& earlier) { return earlier.setting == setting; })) {
    return std::string(name) + " is the same setting as " +
           std::string(name == setting->name ? setting->alias : setting->name);
  }
  given.push_back({setting, *text, std::move(origin)});
  return "";
}

// The parser's messages quote from the text, which may be a token that lacks its quotes.
bool mentions_secret(Flavour flavour, std::string_view text) {
  const auto all = settings(flavour);
  return std::any_of(all.begin(), all.end(), [&](const Setting& setting) {
    return setting.secret && text.find(setting.name) != std::string_view::npos;
  });
}

}  // namespace

ConfigFile read_config_file(Flavour flavour, const std::string& path, std::string_view text) {
  ConfigFile file;
  try {
    const toml::table table = toml::parse(text);
    for (const auto& [key, node] : table) {
      const std::string line = line_name(key.source(), path);
      const std::string wrong =
          read_entry(flavour, key.str(), node, {Origin::Source::file, line}, file.given);
      if (wrong.empty()) continue;
      file.error = line + ": " + wrong;
      break;
    }
  } catch (const toml::parse_error& error) {
    file.error = line_name(error.source(), path) + ": not valid TOML";
    if (!mentions_secret(flavour, text)) file.error += ": " + in_one_line(error.description());
  }
  return file;
}

}  // namespace lockd
