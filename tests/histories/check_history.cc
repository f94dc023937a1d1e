// Says what of a history cannot be true.
//
//   check_history FILE [--slices OUT]
//
// With --slices the lines of some keys are copied to OUT, for a second judge. Exits with 0 if
// everything can be true, 1 if not, 2 if the file cannot be read.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>

#include "histories/checker.h"
#include "histories/history_file.h"
#include "histories/history_names.h"

namespace {

using namespace lockd::histories;

constexpr std::size_t kShown = 50;
constexpr std::size_t kSlices = 240;
constexpr std::size_t kSliceSize = 2000;

void print_table(const History& history) {
  constexpr std::size_t kAskable = static_cast<std::size_t>(Function::stats) + 1;
  std::array<std::array<std::size_t, kViaNames.size()>, kAskable> counts{};
  std::map<std::string, std::size_t> faults;
  std::array<std::size_t, kResultNames.size()> results{};
  std::size_t all = 0;
  std::size_t broken = 0;
  std::size_t forwarded = 0;
  for (const Operation& operation : history.operations) {
    if (operation.function == Function::fault) {
      const std::string& name = history.faults[operation.fault];
      if (!is_consequence(name)) ++broken;
      ++faults[name];
    }
    if (operation.function > Function::stats) continue;
    ++all;
    if (operation.forwarded) ++forwarded;
    ++counts[static_cast<std::size_t>(operation.function)][static_cast<std::size_t>(operation.via)];
    ++results[static_cast<std::size_t>(operation.result)];
  }
  std::printf("%-10s %10s %10s %10s %10s\n", "", "tcp", "tls", "http", "lib");
  for (std::size_t function = 0; function < counts.size(); ++function) {
    std::printf("%-10s", std::string(name_of(static_cast<Function>(function))).c_str());
    for (const std::size_t count : counts[function]) std::printf(" %10zu", count);
    std::printf("\n");
  }
  std::printf("%zu operations on %zu keys:", all, history.keys.size());
  for (std::size_t result = 0; result < results.size(); ++result) {
    std::printf(" %s %zu", std::string(name_of(static_cast<Result>(result))).c_str(),
                results[result]);
  }
  std::printf("\n");
  if (forwarded > 0) {
    std::printf("%zu were forwarded\n", forwarded);
  }
  const auto kinds = std::count_if(faults.begin(), faults.end(),
                                   [](const auto& fault) { return !is_consequence(fault.first); });
  std::printf("%zu faults of %td kinds:", broken, kinds);
  for (const auto& [name, count] : faults) std::printf(" %s %zu", name.c_str(), count);
  std::printf("\n");
}

void print(const Finding& finding) {
  std::printf("%s  key %s: %s (line", finding.invariant.c_str(), finding.key.c_str(),
              finding.what.c_str());
  for (const std::uint32_t line : finding.lines) std::printf(" %u", line);
  std::printf(")\n");
}

int run(const char* file, const char* slices) {
  const History history = read_history(file);
  print_table(history);
  const std::vector<Finding> findings = check(history);
  std::printf("%zu violations\n", findings.size());
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) print(findings[i]);
  if (findings.size() > kShown) std::printf("and so on\n");
  if (slices != nullptr) write_slices(history, slices, kSlices, kSliceSize);
  return findings.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool sliced = argc == 4 && std::strcmp(argv[2], "--slices") == 0;
  if (argc != 2 && !sliced) {
    std::fprintf(stderr, "usage: check_history FILE [--slices OUT]\n");
    return 2;
  }
  try {
    return run(argv[1], sliced ? argv[3] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "check_history: %s\n", error.what());
    return 2;
  }
}
