#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "histories/flat_json.h"
#include "histories/history_file.h"
#include "histories/history_names.h"

namespace lockd::histories {
namespace {

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  History read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      if (end > 0) read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(history_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(name_ + ":" + std::to_string(line_) + ": " + why);
  }

  void read_line(std::string_view line) {
    operation_ = {};
    operation_.line = line_;
    function_ = {};
    result_ = {};
    auto_release_ = true;
    const bool well = read_flat_json(
        line, [this](std::string_view name, const FlatValue& value) { take(name, value); });
    if (!well) refuse("not a flat JSON object");
    add();
  }

  void take(std::string_view name, const FlatValue& value) {
    Operation& o = operation_;
    if (name == "f")
      function_ = value.text;
    else if (name == "res")
      result_ = value.text;
    else if (name == "key")
      o.key = intern(value.text, key_ids_, history_.keys);
    else if (name == "srv")
      o.server = server_of(value.text);
    else if (name == "kind")
      o.kind = value.text == "sem" ? Kind::semaphore : Kind::lock;
    else if (name == "mode")
      o.mode = value.text == "shared" ? Mode::shared : Mode::exclusive;
    else if (name == "via")
      o.via = static_cast<Via>(index_of(kViaNames, value.text) % kViaNames.size());
    else if (name == "rid")
      o.rid = number(value.text.substr(std::min<std::size_t>(1, value.text.size())));
    else if (name == "ttl")
      o.ttl = seconds(value.text);
    else if (name == "timeout")
      o.timeout = seconds(value.text);
    else if (name == "call")
      o.call = static_cast<Instant>(number(value.text));
    else if (name == "ret")
      o.ret = static_cast<Instant>(number(value.text));
    else if (name == "gave_up")
      o.gave_up = static_cast<Instant>(number(value.text));
    else if (name == "fence")
      o.fence = number(value.text);
    else if (name == "conn")
      o.conn = number(value.text);
    else if (name == "seed")
      history_.seed = number(value.text);
    else if (name == "auto_release")
      auto_release_ = value.text == "true";
    else
      take_small(name, value);
  }

  void take_small(std::string_view name, const FlatValue& value) {
    Operation& o = operation_;
    const auto small = [&] { return static_cast<std::uint32_t>(number(value.text)); };
    if (name == "proc")
      o.proc = small();
    else if (name == "life")
      o.life = small();
    else if (name == "limit")
      o.limit = std::max(small(), 1U);
    else if (name == "permits")
      o.permits = std::max(small(), 1U);
    else if (name == "keys")
      o.keys = std::max(small(), 1U);
    else if (name == "waiters")
      o.waiters = small();
    else if (name == "forwarded")
      o.forwarded = value.text == "true";
    // Other members are for people.
  }

  void add() {
    if (function_ == "run") return;
    if (history_.servers.empty()) history_.servers.push_back({.name = "s"});
    if (function_ == "server") {
      history_.servers[operation_.server].auto_release = auto_release_;
      return;
    }
    const std::size_t function = index_of(kFunctionNames, function_);
    if (function < kFunctionNames.size()) {
      operation_.function = static_cast<Function>(function);
    } else {
      if (function_.empty()) refuse("there is no \"f\"");
      operation_.function = Function::fault;
      operation_.fault = static_cast<std::uint16_t>(intern(function_, fault_ids_, history_.faults));
    }
    operation_.result = result();
    if (operation_.result == Result::info && operation_.function <= Function::stats) {
      operation_.ret = kNever;
    } else if (operation_.ret < operation_.call) {
      refuse("\"ret\" is before \"call\"");
    }
    history_.operations.push_back(operation_);
  }

  Result result() const {
    if (operation_.function > Function::stats) return Result::ok;
    const std::size_t result = index_of(kResultNames, result_);
    if (result < kResultNames.size()) return static_cast<Result>(result);
    if (result_.starts_with("error")) return Result::refused;
    refuse("no such \"res\"");
  }

  std::uint64_t number(std::string_view text) const {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) refuse("not a whole number");
    return number;
  }

  Instant seconds(std::string_view text) const {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0 || number > 1e9) refuse("not a number of seconds");
    return std::llround(number * 1e9);
  }

  using Ids = std::unordered_map<std::string, std::uint32_t>;
  static std::uint32_t intern(std::string_view name, Ids& ids, std::vector<std::string>& names) {
    const auto [found, added] =
        ids.try_emplace(std::string(name), static_cast<std::uint32_t>(names.size()));
    if (added) names.emplace_back(name);
    return found->second;
  }

  std::uint16_t server_of(std::string_view name) {
    auto& servers = history_.servers;
    const auto found =
        std::find_if(servers.begin(), servers.end(),
                     [&](const HistoryServer& server) { return server.name == name; });
    if (found != servers.end()) return static_cast<std::uint16_t>(found - servers.begin());
    servers.push_back({.name = std::string(name)});
    return static_cast<std::uint16_t>(servers.size() - 1);
  }

  const std::string name_;
  History history_;
  Ids key_ids_;
  Ids fault_ids_;
  std::uint32_t line_ = 0;
  // Of the line that is being read.
  Operation operation_;
  std::string_view function_;
  std::string_view result_;
  bool auto_release_ = true;
};

// A file in memory, as the system maps it.
class Mapped {
 public:
  explicit Mapped(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (file_ < 0 || ::fstat(file_, &status) != 0) {
      throw std::runtime_error("cannot read " + path);
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  }
  ~Mapped() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
    ::close(file_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::string_view text() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  const int file_;
  std::size_t size_ = 0;
  void* memory_ = nullptr;
};

}  // namespace

History read_history(const std::string& path) {
  const Mapped file(path);
  return parse_history(file.text(), path);
}

History parse_history(std::string_view text, const std::string& name) {
  return Reader(name).read(text);
}

}  // namespace lockd::histories
