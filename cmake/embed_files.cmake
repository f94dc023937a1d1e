# cmake -DOUTPUT=<file.cc> "-DFILES=<file>|<url path>;..." -P embed_files.cmake
#
# Writes find_web_file() of protocol/http/routes.h: each file as an array of bytes.

set(types_html "text/html; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_svg "image/svg+xml")
set(types_json "application/json")

set(arrays "")
set(rows "")
set(number 0)
foreach(entry IN LISTS FILES)
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 file)
  list(GET entry 1 path)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING "${extension}" 1 -1 extension)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${types_${extension}}\", {kFile${number}, sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "#include \"protocol/http/routes.h\"

namespace lockd {
namespace {

${arrays}
constexpr WebFile kFiles[] = {
${rows}};

}  // namespace

const WebFile* find_web_file(std::string_view path) {
  for (const WebFile& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace lockd
")
