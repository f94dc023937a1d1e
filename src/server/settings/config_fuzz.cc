// A configuration file, and the same text as a command line. Each is taken or refused with one
// line; what was taken prints as text that is taken again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/testing/load_options_fixture.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

void check_loaded(const lockd::Loaded& loaded) {
  check(loaded.error.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const lockd::FakeEnvironment machine;
  const lockd::Loaded loaded = machine.load_file(text);
  check_loaded(loaded);
  if (loaded.error.empty() && loaded.options.secret.empty()) {
    check(machine.load_file(lockd::config_text(loaded)).error.empty());
  }
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size() && words.size() < 16;) {
    const std::size_t end = std::min(text.find('\0', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  check_loaded(machine.load(arguments));
  return 0;
}
