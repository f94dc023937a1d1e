#include "histories/recorder.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>

#include "histories/dialect.h"

namespace lockd::histories {
namespace {

constexpr std::chrono::seconds kReplyPatience{45};

bool parse(int argc, char** argv, std::string& folder, const std::vector<Setting>& settings) {
  if (argc < 2 || argc % 2 != 0) return false;
  folder = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& s) { return s.name == argv[i]; });
    if (setting == settings.end()) return false;
    const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
    if (std::from_chars(argv[i + 1], end, *setting->value).ptr != end) return false;
  }
  return true;
}

}  // namespace

int record(int argc, char** argv, std::string& folder, std::uint64_t& seed,
           std::vector<Setting> settings, const std::function<void()>& play) {
  seed = std::random_device()();
  settings.push_back({"--seed", &seed});
  if (!parse(argc, argv, folder, settings)) {
    std::fprintf(stderr, "usage: %s FOLDER", argv[0]);
    for (const Setting& setting : settings) std::fprintf(stderr, " [%s N]", setting.name.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  try {
    play();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}

void ask_by_line(LineClient& client, const Recording& recording, Operation& operation) {
  const Request request{.key = operation.key,
                        .key_name = recording.key(operation.key),
                        .kind = operation.kind,
                        .limit = operation.limit,
                        .mode = operation.mode,
                        .permits = operation.permits,
                        .ttl = operation.ttl,
                        .timeout = operation.timeout,
                        .token = {}};
  operation.call = now();
  client.send(line_dialect().write(request));
  std::string line = client.read_line(kReplyPatience) + "\n";
  if (line.starts_with('<')) {
    operation.gave_up = now();
    return;
  }
  Reply reply;
  line_dialect().read(request, line, reply);
  operation.ret = now();
  operation.result = reply.result;
  operation.fence = reply.fence;
}

}  // namespace lockd::histories
