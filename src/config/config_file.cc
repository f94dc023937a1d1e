#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "config/settings.h"

namespace lockd::config {
namespace {

using Kind = Option::Kind;

constexpr std::size_t kOriginColumn = 40;

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

// A list of texts, for what may be given several times.
std::optional<std::string> list_text(const toml::array& list) {
  std::string all;
  for (const toml::node& node : list) {
    const auto* const text = node.as_string();
    if (text == nullptr) return std::nullopt;
    all += (all.empty() ? "" : ",") + text->get();
  }
  return all;
}

// As someone would have written it in a flag; none for a table, a date, or a list where there is
// one value.
std::optional<std::string> value_text(const Option& option, const toml::node& node) {
  if (const auto* list = node.as_array(); list != nullptr && option.repeats) {
    return list_text(*list);
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    std::array<char, 512> digits;  // the largest has 309 of them, and the smallest as many zeros
    const auto end =
        std::to_chars(digits.begin(), digits.end(), number->get(), std::chars_format::fixed).ptr;
    return std::string(digits.begin(), end);
  }
  return std::nullopt;
}

std::string unknown_name(std::span<const Option> table, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : table) names.push_back(option.name);
  return "unknown setting " + in_quotes(name) + suggestion(name, names, "");
}

// What is wrong with one entry, or empty; what is right is added to `given`.
std::string read_entry(std::span<const Option> table, std::string_view name, const toml::node& node,
                       Origin origin, std::vector<Given>& given) {
  const Option* option = find_option(table, name);
  if (option == nullptr) return unknown_name(table, name);
  if (option->name == "config") return "'config' cannot be set in the file itself";
  const auto text = value_text(*option, node);
  // A token or a file's name may look like a number, and would not be read as it was written.
  if (option->kind >= Kind::text && !node.is_string() && !(text && node.is_array())) {
    return std::string(name) + " is text, and needs quotes around it";
  }
  if (!text) return std::string(name) + " takes " + rule_of(*option);
  // TOML refuses a name twice, but knows nothing of an alias.
  if (std::any_of(given.begin(), given.end(),
                  [&](const Given& earlier) { return earlier.option == option; })) {
    return std::string(name) + " is the same setting as " +
           std::string(name == option->name ? option->alias : option->name);
  }
  given.push_back({option, *text, std::move(origin)});
  return "";
}

// The parser's messages quote from the text, which may be a token that lacks its quotes.
bool mentions_secret(std::span<const Option> table, std::string_view text) {
  return std::any_of(table.begin(), table.end(), [&](const Option& option) {
    return option.secret &&
           (text.find(option.name) != std::string_view::npos ||
            (!option.alias.empty() && text.find(option.alias) != std::string_view::npos));
  });
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

std::string entry_text(const Option& option, const Settings::Value& value) {
  const std::string name(option.name);
  std::string line;
  if (value.text.empty()) {
    line = "# " + name + ": " + std::string(option.default_note);
  } else if (option.secret) {
    line = "# " + name + ": hidden";
  } else if (option.name == "config") {
    line = "# " + name + ": " + toml_string(value.text);  // not for a file to say
  } else {
    line = name + " = " + (option.kind >= Kind::size ? toml_string(value.text) : value.text);
  }
  line.resize(std::max(line.size() + 2, kOriginColumn), ' ');
  return line + "# " + value.origin.name + '\n';
}

}  // namespace

ConfigFile read_config_file(std::span<const Option> table, const std::string& path,
                            std::string_view text) {
  ConfigFile file;
  try {
    const toml::table entries = toml::parse(text);
    for (const auto& [key, node] : entries) {
      const std::string line = line_name(key.source(), path);
      const std::string wrong = read_entry(table, key.str(), node, {1, line}, file.given);
      if (wrong.empty()) continue;
      file.error = line + ": " + wrong;
      break;
    }
  } catch (const toml::parse_error& error) {
    file.error = line_name(error.source(), path) + ": not valid TOML";
    if (!mentions_secret(table, text)) file.error += ": " + in_one_line(error.description());
  }
  return file;
}

std::string config_text(const Settings& settings) {
  std::string text;
  std::string_view group;
  for (const Option& option : settings.table()) {
    if (option.group != group) {
      text += (group.empty() ? "# " : "\n# ") + std::string(option.group) + '\n';
    }
    group = option.group;
    text += entry_text(option, settings.value(option.name));
  }
  return text;
}

}  // namespace lockd::config
