// Text as manual pages have it: roff with the macros of man(7). Pure functions.
//
// For what makes a page out of a table: lockctl's commands, the server's settings.
//
//   roff::title("dflockd", "lockd 1.0") + roff::section("Options") + roff::tagged("--port", "...")
#pragma once

#include <string>
#include <string_view>

namespace lockd::roff {

// Text as roff takes it: its escapes escaped, and a line that begins with a control character
// guarded. Hyphens are to be minus signs, which is what people copy.
std::string escaped(std::string_view text);

// The first line of a page of section 1; `source` is the program's version.
std::string title(std::string_view name, std::string_view source);

std::string section(std::string_view name);

// Empty lines between paragraphs become .PP.
std::string paragraphs(std::string_view text);

// Something in bold, and beneath it what is to be said of it.
std::string tagged(std::string_view tag, std::string_view text);

// What is typed or shown as it stands, after a line on what it is.
std::string example(std::string_view meaning, std::string_view lines);

}  // namespace lockd::roff
