#include "docs/session_player.h"

#include <map>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/server.h"
#include "server/settings/load_options.h"
#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Kind = Step::Kind;

// "<token1>", and in the first group what it stands for.
const std::regex kPlaceholder("<(token|seconds)[0-9]+>");
const std::regex kToken("^[0-9a-f]{32}(?![0-9a-f])");
const std::regex kSeconds(R"(^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9.eE+-]))");

// What placeholders stand for.
class Values {
 public:
  // Replaces those that have a value. The others stay as they are.
  std::string filled_in(const std::string& text) const {
    std::string filled = text;
    for (const auto& [placeholder, value] : values_) {
      for (std::size_t at; (at = filled.find(placeholder)) != std::string::npos;) {
        filled.replace(at, placeholder.size(), value);
      }
    }
    return filled;
  }

  bool know(const std::string& placeholder) const { return values_.contains(placeholder); }

  // Whether `line` is what `shown` says, once the placeholders that are new have taken their value.
  bool take_from(const std::string& line, const std::string& shown) {
    std::smatch part;
    std::string expected = filled_in(shown);
    while (std::regex_search(expected, part, kPlaceholder)) {
      const auto at = static_cast<std::size_t>(part.position());
      if (line.compare(0, at, expected, 0, at) != 0) return false;
      const std::string rest = line.substr(at);
      std::smatch value;
      if (!std::regex_search(rest, value, part[1] == "token" ? kToken : kSeconds)) return false;
      values_.emplace(part.str(), value.str());
      expected = filled_in(shown);
    }
    return line == expected;
  }

 private:
  std::map<std::string, std::string> values_;
};

// The options that the flags of a session make, on any free port.
std::optional<Options> options_of(const std::vector<std::string>& flags, std::string& error) {
  std::vector<const char*> arguments;
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  const config::Environment none{
      .variable = [](const char*) { return nullptr; },
      .read_file = [](const std::string&) { return config::FileText{.error = "none"}; },
      .cores = 2};
  Loaded loaded = load_options(Flavour::dflockd, arguments, none);
  error = loaded.error;
  if (!error.empty()) return std::nullopt;
  const Options free_port = line_options();
  loaded.options.host = free_port.host;
  loaded.options.port = free_port.port;
  return loaded.options;
}

class Player {
 public:
  explicit Player(const Options& options) : server_(options) {}

  // What is wrong with a step, or nothing. `next` is the step behind it, if there is one.
  std::string play(const Step& step, const Step* next) {
    switch (step.kind) {
      case Kind::send: return send(step, next != nullptr && next->kind == Kind::wait);
      case Kind::receive: return receive(step);
      case Kind::wait: return {};  // seen to when it was sent
      case Kind::close: client(step.client).close(); return {};
      case Kind::closed: return closed(step);
      case Kind::pause: std::this_thread::sleep_for(step.pause); return {};
      case Kind::stop: return stop();
      case Kind::order: return order(step);
    }
    return {};
  }

  // Whatever came and was not shown.
  std::string end() {
    if (!waiting_.empty()) return std::string("it ends while ") + *waiting_.begin() + " waits";
    for (auto& [name, client] : clients_) {
      if (!client.connected()) continue;
      client.half_close();
      if (const std::string line = client.read_line(); line != kEnd) {
        return std::string(1, name) + " has also received: " + line;
      }
    }
    return {};
  }

 private:
  LineClient& client(char name) {
    const auto known = clients_.find(name);
    return known != clients_.end() ? known->second
                                   : clients_.emplace(name, server_.connect()).first->second;
  }

  std::string send(const Step& step, bool waits) {
    const std::string bytes = values_.filled_in(step.text);
    if (std::regex_search(bytes, kPlaceholder)) return "a placeholder that has no value yet";
    LineClient& sender = client(step.client);
    if (!waits) return sender.send(bytes) ? "" : "it cannot be sent";
    // In one segment: the reply to the first, which nobody sees, and that of what is behind it, if
    // it has one, come together.
    waiting_.insert(step.client);
    if (const std::string line = sender.ask("ping\n\n\n" + bytes); line != "ok") {
      return "before it waits it received: " + line;
    }
    const std::string line = sender.read_line(0ms);
    return line == kSilence ? "" : "it does not wait, but received: " + line;
  }

  std::string receive(const Step& step) {
    const std::string line = client(step.client).read_line();
    if (!line.starts_with("sig ")) waiting_.erase(step.client);
    if (values_.take_from(line, step.text)) return {};
    return "shown:    " + values_.filled_in(step.text) + "\n  received: " + line;
  }

  std::string closed(const Step& step) {
    LineClient& peer = client(step.client);
    const std::string line = peer.read_line();
    peer.close();
    return line == kEnd ? "" : "it is not closed, but received: " + line;
  }

  // Every loop closes its port first: when nobody can connect, all of them are stopping.
  std::string stop() {
    server_.server().drain();
    const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
    while (server_.connect().connected()) {
      if (LineClient::Clock::now() > deadline) return "it does not close its port";
      std::this_thread::sleep_for(1ms);
    }
    return {};
  }

  std::string order(const Step& step) const {
    if (!values_.know(step.text) || !values_.know(step.other)) {
      return "a placeholder that has no value";
    }
    const std::string first = values_.filled_in(step.text);
    const std::string second = values_.filled_in(step.other);
    return first < second ? "" : first + " does not sort before " + second;
  }

  LineServer server_;
  std::map<char, LineClient> clients_;
  std::set<char> waiting_;
  Values values_;
};

}  // namespace

std::optional<Complaint> play(const ShownSession& session) {
  std::string wrong;
  const auto options = options_of(session.flags, wrong);
  if (!options) return Complaint{session.line, wrong};
  Player player(*options);
  for (auto step = session.steps.begin(); step != session.steps.end(); ++step) {
    const auto next = std::next(step);
    wrong = player.play(*step, next == session.steps.end() ? nullptr : &*next);
    if (!wrong.empty()) return Complaint{step->line, wrong};
  }
  wrong = player.end();
  if (!wrong.empty()) return Complaint{session.line, wrong};
  return std::nullopt;
}

}  // namespace lockd
