// The manual, as roff with the macros of man(7).
#include <algorithm>
#include <cctype>

#include "config/pages.h"

namespace lockd::config {
namespace {

// Text as roff takes it: its escapes escaped, and a line that begins with a control character
// guarded. Hyphens are to be minus signs, which is what people copy.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '~': out += "\\(ti"; break;
      case '^': out += "\\(ha"; break;
      default: out += c;
    }
  }
  return out;
}

// The argument of a macro.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : escaped(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + '"';
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string section(std::string_view title) { return ".SH " + quoted(upper(title)) + '\n'; }

// Something in bold, and beneath it what is to be said of it.
std::string tagged(std::string_view tag, std::string_view text) {
  return ".TP\n.B " + quoted(tag) + '\n' + escaped(text) + '\n';
}

std::string notes_text(std::string_view title, std::span<const Note> notes) {
  if (notes.empty()) return "";
  std::string out = section(title);
  for (const Note& note : notes) out += tagged(note.tag, note.text);
  return out;
}

// Empty lines between paragraphs become .PP.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    if (!out.empty()) out += ".PP\n";
    out += escaped(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::string commands_section(const Place& place) {
  if (place.command->commands.empty()) return "";
  std::string out = section("Commands");
  for (const Place& below : places_of(place)) {
    if (!below.command->commands.empty()) continue;
    out += tagged(below.path.substr(place.path.size() + 1),
                  std::string(below.command->summary) + "; see " + page_name(below) + "(1).");
  }
  return out;
}

std::string options_text(const Place& place) {
  const Command& command = *place.command;
  std::string out;
  std::string_view group;
  for (const Option& option : command.options) {
    if (option.group != group) out += section(option.group);
    group = option.group;
    const std::string facts = facts_text(option);
    out +=
        tagged(flag_text(option), meaning_text(option) + (facts.empty() ? "" : '\n' + facts + '.'));
  }
  const std::string shared = shared_text(command);
  if (shared.empty()) return out;
  return out + section(command.shared.front().group) +
         escaped(shared + ": see " + page_name({shared_path(place)}) + "(1).") + '\n';
}

// What is typed, as it stands, after a line on what it does.
std::string examples_text(std::span<const Example> examples) {
  if (examples.empty()) return "";
  std::string out = section("Examples");
  for (const Example& example : examples) {
    out += ".PP\n" + escaped(example.meaning) + "\n.PP\n.RS 4\n.nf\n" + escaped(example.lines) +
           "\n.fi\n.RE\n";
  }
  return out;
}

std::string see_also(std::string_view pages) {
  if (pages.empty()) return "";
  std::string out = section("See also");
  while (!pages.empty()) {
    const std::size_t end = std::min(pages.find(' '), pages.size());
    out += ".BR " + escaped(pages.substr(0, end)) + (end < pages.size() ? " (1),\n" : " (1)\n");
    pages.remove_prefix(std::min(end + 1, pages.size()));
  }
  return out;
}

}  // namespace

std::string page_name(const Place& place) {
  std::string name = place.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const Place& place, std::string_view source) {
  const Command& command = *place.command;
  const std::string name = page_name(place);
  std::string out = ".TH " + quoted(upper(name)) + " 1 \"\" " + quoted(source) +
                    " \"User Commands\"\n" + section("Name") + escaped(name) + " \\- " +
                    escaped(command.summary) + '\n' + section("Synopsis") +
                    escaped(usage_text(place)) + '\n' + section("Description") +
                    paragraphs(command.description) + commands_section(place);
  if (!command.operands.empty()) out += section("Arguments");
  for (const Operand& operand : command.operands) out += tagged(operand.name, operand.help);
  out += options_text(place) + notes_text("Exit status", command.exits);
  for (const Section& more : command.sections) out += notes_text(more.title, more.notes);
  return out + examples_text(command.examples) + see_also(command.see_also);
}

}  // namespace lockd::config
