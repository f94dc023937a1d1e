#include "lockctl/completion.h"

#include "lockctl/commands/command_table.h"

namespace lockd::cli {

std::vector<std::pair<std::string, std::string>> first_words() {
  std::vector<std::pair<std::string, std::string>> words;
  for (const Command& command : commands()) {
    const std::size_t space = command.name.find(' ');
    std::string word(command.name.substr(0, space));
    if (space == std::string_view::npos) {
      words.emplace_back(std::move(word), command.summary);
    } else if (words.empty() || words.back().first != word) {
      words.emplace_back(std::move(word), "Snapshot at a journal");
    }
  }
  return words;
}

std::vector<std::pair<std::string, std::string>> second_words(std::string_view first) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const Command& command : commands()) {
    const std::size_t space = command.name.find(' ');
    if (space == std::string_view::npos || command.name.substr(0, space) != first) continue;
    words.emplace_back(command.name.substr(space + 1), command.summary);
  }
  return words;
}

}  // namespace lockd::cli
