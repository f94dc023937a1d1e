// Folders are layers. Reads every #include under src/ and include/ and refuses the edges that are
// not listed here, so that the picture in the documentation stays true.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Names = std::set<std::string, std::less<>>;

// Layer -> the layers it may include. A layer is a folder of src/, or one of protocol/'s; `lockd`
// is include/lockd, and `lockd/client` the part of it that is the client library's. A folder's
// testing/ belongs to its layer, but only tests may include it.
const std::map<std::string, Names, std::less<>> kMayInclude = {
    {"lockd", {"lockd"}},
    {"lockd/client", {"lockd", "lockd/client"}},
    {"base", {"base"}},
    {"config", {"base", "config"}},
    {"protocol", {"protocol"}},
    {"protocol/line", {"base", "lockd", "protocol", "protocol/line"}},
    {"protocol/http", {"base", "lockd", "protocol", "protocol/http"}},
    {"net", {"base", "net"}},  // knows nothing of locks
    {"core", {"base", "core", "lockd"}},
    {"journal", {"base", "journal", "lockd"}},
    {"pubsub", {"base", "lockd", "pubsub"}},
    {"engine", {"base", "core", "engine", "lockd"}},  // Journal the interface, not journal/
    {"replication", {"base", "journal", "lockd", "replication"}},
    {"etcd", {"base", "etcd", "journal", "lockd", "net", "replication"}},
    // The calls of all protocols and what executes them; the other half of the server are its
    // sessions, sockets and reports.
    {"service",
     {"base", "engine", "lockd", "protocol", "protocol/http", "protocol/line", "pubsub",
      "replication", "server", "service"}},
    {"server",
     {"base", "config", "engine", "journal", "lockd", "net", "protocol", "protocol/http",
      "protocol/line", "pubsub", "replication", "server", "service"}},
    // What only a server needs that is one of several. The rest knows its LeaderGate.
    {"cluster",
     {"base", "cluster", "config", "etcd", "journal", "lockd", "net", "protocol/line",
      "replication", "server", "service"}},
    {"client", {"base", "client", "lockd", "lockd/client", "net", "protocol/line"}},
    {"loadgen", {"base", "client", "loadgen", "lockd", "lockd/client"}},
    {"lockctl",
     {"base", "client", "config", "journal", "loadgen", "lockctl", "lockd", "lockd/client", "net",
      "protocol/http", "protocol/line"}},
};

// Asio and Beast stay at the edges.
const Names kMayUseSockets = {"cluster", "lockctl", "net", "protocol/http", "server"};

// The rules are pure: no threads, files, randomness or terminal. <chrono> is there for durations.
// Their tests may draw random histories and print them.
const Names kNotInCore = {"barrier", "condition_variable", "filesystem",   "fstream",
                          "future",  "iostream",           "latch",        "mutex",
                          "random",  "semaphore",          "shared_mutex", "stop_token",
                          "thread"};

// What lies at the root of the sources. Hidden files are the affair of tools.
const Names kAtRoot = {
    "ARCHITECTURE.md", "DESIGN.md", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json",
    "CONTRIBUTING.md", "LICENSE",   "Makefile",     "README.md",      "SECURITY.md",
    "bench",           "build",     "clients",      "cmake",          "docs",
    "examples",        "include",   "packaging",    "scripts",        "src",
    "tests",           "web"};

struct Include {
  std::size_t line = 0;
  std::string path;
  bool quoted = false;

  std::string written() const { return quoted ? '"' + path + '"' : '<' + path + '>'; }
};

// The #include on one line of source, if there is one; `line` is left for the caller to number.
bool parse_include(std::string_view text, Include* include) {
  const auto skip = [&text](std::string_view token) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
  };
  if (!skip("#") || !skip("include")) return false;
  include->quoted = skip("\"");
  if (!include->quoted && !skip("<")) return false;
  const std::size_t end = text.find(include->quoted ? '"' : '>');
  if (end == std::string_view::npos) return false;
  include->path = text.substr(0, end);
  return true;
}

std::vector<Include> includes_of(std::string_view source) {
  std::vector<Include> includes;
  for (std::size_t line = 1; !source.empty(); ++line) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    Include include{.line = line};
    if (parse_include(source.substr(0, end), &include)) includes.push_back(include);
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return includes;
}

// "core/lock_table.h" -> "core"; empty when there is no folder.
std::string folder_of(std::string_view path) {
  for (const std::string_view inner : {"lockd/client", "protocol/line", "protocol/http"}) {
    if (path.starts_with(std::string(inner) + '/')) return std::string(inner);
  }
  const std::size_t slash = path.find('/');
  return std::string(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

// "src/core/lock_table.cc" -> "core", "include/lockd/engine.h" -> "lockd".
std::string layer_of(std::string_view file) { return folder_of(file.substr(file.find('/') + 1)); }

std::string list(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool is_for_tests(std::string_view path) {
  return path.ends_with("_test.cc") || path.ends_with("_fuzz.cc") ||
         path.find("/testing/") != std::string_view::npos;
}

// Why `layer` may not have this include; empty when it may.
std::string objection(const std::string& layer, bool is_test, const Include& include) {
  const std::string target = folder_of(include.path);
  if (!is_test && is_for_tests(include.path)) return "only tests may include that";
  if (include.quoted || target.starts_with("lockd")) {
    const Names& allowed = kMayInclude.at(layer);
    if (allowed.contains(target)) return "";
    return layer + " may include only: " + list(allowed);
  }
  const bool sockets =
      include.path.starts_with("boost/asio") || include.path.starts_with("boost/beast");
  if (sockets && !kMayUseSockets.contains(layer)) {
    return "Asio and Beast may be used only by: " + list(kMayUseSockets);
  }
  if (layer == "core" && !is_test && kNotInCore.contains(include.path)) {
    return "core is pure, and may not use: " + list(kNotInCore);
  }
  return "";
}

// Everything wrong with one file, as lines that an editor can jump to. `file` is relative to the
// root of the sources.
std::vector<std::string> objections(const std::string& file, std::string_view source) {
  const std::string layer = layer_of(file);
  if (!kMayInclude.contains(layer)) {
    return {file + ":1: is in no layer; list its folder in tests/layers/layers_test.cc"};
  }
  std::vector<std::string> found;
  for (const Include& include : includes_of(source)) {
    const std::string why = objection(layer, is_for_tests(file), include);
    if (why.empty()) continue;
    found.push_back(file + ":" + std::to_string(include.line) + ": includes " + include.written() +
                    ", but " + why);
  }
  return found;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Layers, EveryIncludeIsListed) {
  const std::filesystem::path root = LOCKD_SOURCE_DIR;
  for (const char* top : {"src", "include"}) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      ++files;
      const std::string file = entry.path().lexically_relative(root).string();
      for (const std::string& what : objections(file, read(entry.path()))) ADD_FAILURE() << what;
    }
    EXPECT_GT(files, 0U) << "no sources in " << root / top;
  }
}

TEST(Layers, TheRootHasNothingElse) {
  for (const auto& entry : std::filesystem::directory_iterator(LOCKD_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.starts_with('.') || kAtRoot.contains(name))
        << name << ": belongs in a folder, or in the list in tests/layers/layers_test.cc";
  }
}

TEST(LayersChecker, RefusesWhatIsNotListed) {
  const struct {
    const char* file;
    const char* source;
  } refused[] = {
      {"include/lockd/engine.h", "#include \"core/lock_table.h\""},
      {"src/base/hash.cc", "#include \"lockd/types.h\""},
      {"src/base/hash.cc", "#include <lockd/types.h>"},
      {"src/net/loop.h", "#include \"lockd/engine.h\""},
      {"src/core/lock_table.cc", "#include \"engine/shard.h\""},
      {"src/core/lock_table_test.cc", "#include \"engine/shard.h\""},
      {"src/core/lock_table.cc", "#include <mutex>"},
      {"src/core/lock_table.cc", "#include <random>"},
      {"src/core/lock_table.cc", "  #  include\t<thread>  // for a moment"},
      {"src/engine/engine.cc", "#include \"journal/file_journal.h\""},
      {"src/engine/engine.cc", "#include <boost/asio.hpp>"},
      {"src/journal/segment.cc", "#include <boost/beast/core.hpp>"},
      {"src/client/client.cc", "#include \"engine/engine.h\""},
      {"include/lockd/engine.h", "#include \"lockd/client/client.h\""},
      {"include/lockd/client/client.h", "#include \"client/renewer.h\""},
      {"src/engine/engine.cc", "#include \"lockd/client/client.h\""},
      {"src/server/main.cc", "#include <lockd/client/client.h>"},
      {"src/replication/replica.cc", "#include \"engine/engine.h\""},
      {"src/server/main.cc", "#include \"cli/main.h\""},
      {"src/server/main.cc", "#include \"client/client.h\""},
      {"src/lockctl/main.cc", "#include \"server/worker.h\""},
      {"src/server/worker.cc", "#include \"cluster/cluster_gate.h\""},
      {"src/server/daemon.cc", "#include \"etcd/etcd_journal.h\""},
      {"src/core/lock_table.cc", "#include \"core/testing/lock_model.h\""},
      {"src/protocol/line/line_reply.cc", "#include \"protocol/http/reply.h\""},
      {"src/core/key.cc", "#include \"key.h\""},
      {"src/core/key.cc", "#include \"../engine/shard.h\""},
      {"src/util/helper.cc", "int x;"},
      {"src/stray.cc", "int x;"},
  };
  for (const auto& [file, source] : refused) {
    EXPECT_EQ(objections(file, source).size(), 1U) << file << ": " << source;
  }
}

TEST(LayersChecker, AcceptsWhatIsListed) {
  const struct {
    const char* file;
    const char* source;
  } accepted[] = {
      {"include/lockd/engine.h", "#include \"lockd/types.h\"\n#include <chrono>\n"},
      {"include/lockd/client/client.h", "#include \"lockd/client/outcome.h\"\n"},
      {"src/client/client.cc", "#include \"lockd/client/client.h\"\n#include \"lockd/types.h\"\n"},
      {"src/core/lock_table.cc", "#include \"core/lock_table.h\"\n\n#include <chrono>\n"},
      {"src/engine/shard.h", "#include <mutex>\n#include \"core/lock_table.h\"\n"},
      {"src/net/loop.h", "#include <boost/asio.hpp>\n#include <net/if.h>\n"},
      {"src/server/worker.cc", "#include \"engine/engine.h\"\n#include \"journal/journal.h\""},
      {"src/core/lock_table_test.cc", "#include <random>\n#include \"core/testing/lock_model.h\""},
      {"src/core/testing/lock_model.cc", "#include <random>\n"},
      {"src/core/lock_table.cc", "// #include \"engine/shard.h\"\n"},
  };
  for (const auto& [file, source] : accepted) {
    EXPECT_EQ(objections(file, source), std::vector<std::string>()) << file << ": " << source;
  }
}

TEST(LayersChecker, SaysWhereAndWhatIsAllowed) {
  EXPECT_EQ(
      objections("src/net/loop.h", "#pragma once\n\n#include \"core/lock_table.h\"\n"),
      std::vector<std::string>{"src/net/loop.h:3: includes \"core/lock_table.h\", but net may "
                               "include only: base, net"});
}

}  // namespace
