// Text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace lockd {

// Appends `text` in quotes. Precondition: it is UTF-8. Control characters are escaped, DEL too, so
// that the result is safe on a terminal as well.
void append_json_string(std::string& out, std::string_view text);

}  // namespace lockd
