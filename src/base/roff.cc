#include "base/roff.h"

#include <algorithm>
#include <cctype>

namespace lockd::roff {
namespace {

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

}  // namespace

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

std::string title(std::string_view name, std::string_view source) {
  return ".TH " + quoted(upper(name)) + " 1 \"\" " + quoted(source) + " \"User Commands\"\n";
}

std::string section(std::string_view name) { return ".SH " + quoted(upper(name)) + '\n'; }

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

std::string tagged(std::string_view tag, std::string_view text) {
  return ".TP\n.B " + quoted(tag) + '\n' + escaped(text) + '\n';
}

std::string example(std::string_view meaning, std::string_view lines) {
  return ".PP\n" + escaped(meaning) + "\n.PP\n.RS 4\n.nf\n" + escaped(lines) + "\n.fi\n.RE\n";
}

}  // namespace lockd::roff
