#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "histories/history_file.h"
#include "histories/history_names.h"

namespace lockd::histories {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_to_write(const std::string& path) {
  File file(std::fopen(path.c_str(), "we"), &std::fclose);
  if (file == nullptr) throw std::runtime_error("cannot write " + path);
  return file;
}

void print_servers(std::FILE* file, const History& history) {
  std::fprintf(file, "{\"f\":\"run\",\"seed\":%llu}\n",
               static_cast<unsigned long long>(history.seed));
  for (const HistoryServer& server : history.servers) {
    std::fprintf(file, "{\"f\":\"server\",\"srv\":\"%s\",\"auto_release\":%s}\n",
                 server.name.c_str(), server.auto_release ? "true" : "false");
  }
}

std::string in_seconds(Instant ns) {
  std::array<char, 32> text;
  const int size = std::snprintf(text.data(), text.size(), "%.9f", static_cast<double>(ns) / 1e9);
  std::string_view shown(text.data(), static_cast<std::size_t>(size));
  shown = shown.substr(0, shown.find_last_not_of('0') + 1);
  if (shown.ends_with('.')) shown.remove_suffix(1);
  return std::string(shown);
}

class Printer {
 public:
  Printer(std::FILE* file, const History& history) : file_(file), history_(history) {}

  void print(const Operation& o, std::size_t i) {
    text_.clear();
    member("{\"i\":", i);
    member(",\"proc\":", o.proc);
    const bool is_fault = o.function == Function::fault;
    word(",\"f\":", is_fault ? history_.faults[o.fault] : name_of(o.function));
    if (o.function <= Function::stats) print_request(o);
    member(",\"call\":", static_cast<std::uint64_t>(o.call));
    if (o.ret != kNever) member(",\"ret\":", static_cast<std::uint64_t>(o.ret));
    if (o.gave_up != kNever) member(",\"gave_up\":", static_cast<std::uint64_t>(o.gave_up));
    if (o.conn != 0) member(",\"conn\":", o.conn);
    if (!history_.servers.empty()) word(",\"srv\":", history_.servers[o.server].name);
    member(",\"life\":", o.life);
    text_ += "}\n";
    if (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size()) {
      throw std::runtime_error("cannot write the history: the disk is full?");
    }
  }

 private:
  void print_request(const Operation& o) {
    word(",\"key\":", history_.keys[o.key]);
    word(",\"kind\":", o.kind == Kind::lock ? "lock" : "sem");
    member(",\"limit\":", o.limit);
    if (o.mode == Mode::shared) word(",\"mode\":", "shared");
    if (o.permits != 1) member(",\"permits\":", o.permits);
    if (o.keys != 1) member(",\"keys\":", o.keys);
    if (o.rid != 0) word(",\"rid\":", "r" + std::to_string(o.rid));
    if (o.ttl != 0) text_ += ",\"ttl\":" + in_seconds(o.ttl);
    if (o.function < Function::renew || o.function > Function::revoke) {
      text_ += ",\"timeout\":" + in_seconds(o.timeout);
    }
    word(",\"res\":", name_of(o.result));
    if (o.fence != 0) member(",\"fence\":", o.fence);
    if (o.function == Function::stats) member(",\"waiters\":", o.waiters);
    word(",\"via\":", name_of(o.via));
    if (o.forwarded) text_ += ",\"forwarded\":true";
  }

  void member(std::string_view name, std::uint64_t value) {
    std::array<char, 24> digits;
    text_ += name;
    text_.append(digits.data(),
                 std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  void word(std::string_view name, std::string_view value) {
    text_ += name;
    text_ += '"';
    text_ += value;
    text_ += '"';
  }

  std::FILE* const file_;
  const History& history_;
  std::string text_;
};

}  // namespace

std::string_view name_of(Function function) {
  return kFunctionNames[static_cast<std::size_t>(function)];
}
std::string_view name_of(Result result) { return kResultNames[static_cast<std::size_t>(result)]; }
std::string_view name_of(Via via) { return kViaNames[static_cast<std::size_t>(via)]; }

void write_history(History& history, const std::string& path) {
  auto& operations = history.operations;
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) { return a.call < b.call; });
  const File file = open_to_write(path);
  print_servers(file.get(), history);
  Printer printer(file.get(), history);
  for (std::size_t i = 0; i < operations.size(); ++i) printer.print(operations[i], i);
  if (std::fflush(file.get()) != 0) throw std::runtime_error("cannot write " + path);
}

void write_slices(const History& history, const std::string& path, std::size_t keys_max,
                  std::size_t operations_max) {
  const File file = open_to_write(path);
  print_servers(file.get(), history);
  Printer printer(file.get(), history);
  const std::size_t step =
      std::max<std::size_t>(1, (history.keys.size() + keys_max - 1) / keys_max);
  std::vector<bool> is_chosen(history.keys.size());
  for (std::size_t key = 0; key < is_chosen.size(); key += step) is_chosen[key] = true;
  for (const Operation& operation : history.operations) {
    if (operation.keys > 1) is_chosen[operation.key] = true;
  }
  std::vector<std::size_t> printed(history.keys.size() * 2);
  for (const Operation& operation : history.operations) {
    if (operation.function == Function::stats) continue;
    if (operation.function < Function::stats) {
      if (!is_chosen[operation.key]) continue;
      const std::size_t kind = operation.kind == Kind::lock ? 0 : 1;
      if (++printed[operation.key * 2 + kind] > operations_max) continue;
    }
    printer.print(operation, operation.line);
  }
  if (std::fflush(file.get()) != 0) throw std::runtime_error("cannot write " + path);
}

}  // namespace lockd::histories
