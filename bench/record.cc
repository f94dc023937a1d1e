#include "record.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace lockd::bench {
namespace {

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

// Six digits are more than any figure means.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

Member::Member(std::string_view name, double value) : Member(name, number(value), Json{}) {}

Member::Member(std::string_view name, std::string_view text) : Member(name, quoted(text), Json{}) {}

Member::Member(std::string_view name, std::string_view value, Json)
    : json_(quoted(name) + ": " + std::string(value)) {}

void record(std::string_view figure, std::initializer_list<Member> members) {
  const char* const path = std::getenv("LOCKD_BENCH_RECORD");
  if (path == nullptr) return;
  std::string line = "{" + Member("figure", figure).json();
  for (const Member& member : members) line += ", " + member.json();
  std::ofstream file(path, std::ios::app);
  file << line << "}\n" << std::flush;
  if (!file) throw std::runtime_error("cannot write to " + std::string(path));
}

}  // namespace lockd::bench
