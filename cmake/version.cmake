# cmake -DOUTPUT=<file.cc> -DSOURCE_DIR=<repository> -P version.cmake
#
# Writes version_text() of base/version.h, with the commit of the sources. The file changes only
# when the commit does.

execute_process(
  COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()

file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[#include "base/version.h"

namespace lockd {

std::string version_text(std::string_view program) {
  return std::string(program) + ' ' + std::string(kVersion) + " (@commit@)\n";
}

}  // namespace lockd
]] @ONLY)
