// Feeds every file of a folder to a fuzz target, for builds that have no fuzzer.
//
//   line_request_fuzz <folder>
//
// What a target finds ends the process. That there was nothing to feed is an error too.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s <folder of inputs>\n", argv[0]);
    return EXIT_FAILURE;
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // the last one printed is the one that ended it
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  std::printf("%zu inputs\n", files);
  return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
