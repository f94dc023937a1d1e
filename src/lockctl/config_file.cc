#include "lockctl/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "lockctl/commands/command_table.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

namespace lockd::cli {
namespace {

std::string line_of(const toml::source_region& source, const std::string& path) {
  return "line " + std::to_string(source.begin.line) + " of " + path;
}

const Option* setting_of(std::string_view name) {
  for (const Option& option : connection_options()) {
    if (option.variable.empty()) continue;
    if (option.name == name || (!option.alias.empty() && option.alias == name)) return &option;
  }
  return nullptr;
}

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    std::string text = std::to_string(number->get());
    return text.substr(0, text.find_last_not_of('0') + 1);
  }
  return std::nullopt;
}

// A list of texts, for what may be given several times.
std::optional<std::string> joined(const toml::array& list) {
  std::string all;
  for (const toml::node& node : list) {
    const auto* const text = node.as_string();
    if (text == nullptr) return std::nullopt;
    all += (all.empty() ? "" : ",") + text->get();
  }
  return all;
}

std::string entry_text(const Option& option, const toml::node& node, const std::string& origin) {
  const auto* const list = node.as_array();
  const auto text = list != nullptr && option.repeats ? joined(*list) : text_of(node);
  // A token or the name of a file may look like a number, and would not be read as it was written.
  const bool needs_quotes = option.shape == Shape::text || option.shape == Shape::file;
  if (!text || (needs_quotes && list == nullptr && !node.is_string())) {
    throw Failure(kExitConfig, origin + ": " + std::string(option.name) +
                                   (needs_quotes ? " is text, and needs quotes around it"
                                                 : " takes one plain value"));
  }
  return *text;
}

// The parser's messages quote from the text, which may be a token that lacks its quotes.
bool mentions_token(std::string_view text) { return text.find("token") != std::string_view::npos; }

}  // namespace

ConfigFile read_config_file(const std::string& path, std::string_view text) {
  ConfigFile file;
  try {
    const toml::table table = toml::parse(text);
    for (const auto& [key, node] : table) {
      const std::string origin = line_of(key.source(), path);
      const Option* const option = setting_of(key.str());
      if (option == nullptr) {
        throw Failure(kExitConfig, origin + ": there is no setting " + in_quotes(key.str()) +
                                       "; lockctl --help lists them");
      }
      const std::string value = entry_text(*option, node, origin);
      if (!file.entries.emplace(option->name, ConfigFile::Entry{value, origin}).second) {
        throw Failure(kExitConfig, origin + ": " + std::string(option->name) +
                                       " is there twice, once as " + std::string(option->alias));
      }
    }
  } catch (const toml::parse_error& error) {
    throw Failure(kExitConfig,
                  line_of(error.source(), path) + ": not valid TOML" +
                      (mentions_token(text) ? "" : ": " + std::string(error.description())));
  }
  return file;
}

}  // namespace lockd::cli
