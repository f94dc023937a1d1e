// The files that the server carries in itself: the dashboard's, and the description of the API.
// Written by cmake/embed_files.cmake.
#pragma once

#include <string_view>

namespace lockd {

struct WebFile {
  std::string_view path;  // as in a URL
  std::string_view type;
  std::string_view content;
};

// Null when there is none.
const WebFile* find_web_file(std::string_view path);

}  // namespace lockd
