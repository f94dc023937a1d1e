#include "measured_servers.h"

namespace lockd::bench {

ServerCommand floor_command() { return {"floor", {LOCKD_FLOOR_SERVER, "{port}"}}; }

ServerCommand lockd_command(const std::string& program) {
  return {"lockd",
          {program.empty() ? LOCKD_TEST_SERVER : program, "--memory", "--http-addr", "off",
           "--host", "127.0.0.1", "--port", "{port}", "--threads", "1", "--log-level", "warn"}};
}

ServerCommand http_command() {
  return {"http",
          {LOCKD_TEST_LOCKD_SERVER, "--addr", "127.0.0.1:{port}", "--threads", "1", "--log-level",
           "warn"}};
}

// Nothing is kept on disk, as by ours without a journal; one thread is its default.
std::optional<ServerCommand> redis_command() {
  const std::string program = find_program("redis-server");
  if (program.empty()) return std::nullopt;
  return ServerCommand{"redis",
                       {program, "--bind", "127.0.0.1", "--port", "{port}", "--save", "",
                        "--appendonly", "no", "--maxclients", "12000", "--loglevel", "warning"}};
}

}  // namespace lockd::bench
