#include "docs/shown_session.h"

#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

#include "docs/page.h"

namespace lockd {
namespace {

using Kind = Step::Kind;

constexpr std::string_view kFence = "```";
constexpr std::string_view kOpening = "```session";
constexpr std::string_view kServer = "$ dflockd ";
constexpr std::string_view kLineFeed = "⏎";

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), {}};
}

std::string with_line_feeds(std::string text) {
  for (std::size_t at; (at = text.find(kLineFeed)) != std::string::npos;) {
    text.replace(at, kLineFeed.size(), "\n");
  }
  return text;
}

std::optional<Step> exchange(const std::string& line) {
  static const std::regex shape(R"(([A-Z])([<>]) (.*\S))");
  std::smatch part;
  if (!std::regex_match(line, part, shape)) return std::nullopt;
  const bool sends = part[2] == ">";
  return Step{.kind = sends ? Kind::send : Kind::receive,
              .client = line[0],
              .text = sends ? with_line_feeds(part[3]) : part[3].str()};
}

std::optional<Step> deed(const std::string& line) {
  static const std::regex shape(R"(([A-Z]) \((waits|closes|is closed)\))");
  std::smatch part;
  if (!std::regex_match(line, part, shape)) return std::nullopt;
  const Kind kind = part[2] == "waits"    ? Kind::wait
                    : part[2] == "closes" ? Kind::close
                                          : Kind::closed;
  return Step{.kind = kind, .client = line[0]};
}

std::optional<Step> event(const std::string& line) {
  static const std::regex pause(R"(\(([0-9]+(\.[0-9]+)?) s pass(es)?\))");
  static const std::regex order(R"(\((<token[0-9]+>) sorts before (<token[0-9]+>)\))");
  std::smatch part;
  if (line == "(SIGTERM)") return Step{.kind = Kind::stop};
  if (std::regex_match(line, part, pause)) {
    const std::chrono::duration<double> seconds(std::stod(part[1]));
    return Step{.kind = Kind::pause,
                .pause = std::chrono::ceil<std::chrono::milliseconds>(seconds)};
  }
  if (std::regex_match(line, part, order)) {
    return Step{.kind = Kind::order, .text = part[1], .other = part[2]};
  }
  return std::nullopt;
}

std::optional<Step> step_of(const PageLine& line) {
  const std::string text(line.text);
  std::optional<Step> step = exchange(text);
  if (!step) step = deed(text);
  if (!step) step = event(text);
  if (step) step->line = line.number;
  return step;
}

// Why `next` may not follow `step`; empty when it may. A step that is the last has no next one.
std::string objection(const Step& step, const Step* next) {
  if (step.kind == Kind::send) {
    const bool has_outcome =
        next != nullptr && (next->client == step.client || next->kind == Kind::pause);
    return has_outcome ? "" : "what comes of this must be shown next";
  }
  if (next != nullptr && next->kind == Kind::wait) return "to wait, something must have been sent";
  return "";
}

void check_order(const ShownSession& session, std::vector<Complaint>& complaints) {
  if (session.steps.empty()) complaints.push_back({session.line, "a session of nothing"});
  for (auto step = session.steps.begin(); step != session.steps.end(); ++step) {
    const auto next = std::next(step);
    const std::string why = objection(*step, next == session.steps.end() ? nullptr : &*next);
    if (!why.empty()) complaints.push_back({step->line, why});
  }
}

void add_line(const PageLine& line, ShownSessions& shown) {
  ShownSession& session = shown.sessions.back();
  if (line.number == session.line + 1 && line.text.starts_with(kServer)) {
    session.flags = words_of(line.text.substr(kServer.size()));
  } else if (auto step = step_of(line)) {
    session.steps.push_back(std::move(*step));
  } else {
    shown.complaints.push_back({line.number, "no step of a session: " + std::string(line.text)});
  }
}

}  // namespace

ShownSessions sessions_on(std::string_view page) {
  ShownSessions shown;
  bool in_session = false;
  bool in_other = false;
  for (const PageLine& line : lines_of(page)) {
    if (line.text.starts_with(kFence)) {
      if (in_session) check_order(shown.sessions.back(), shown.complaints);
      const bool opens = !in_session && !in_other;
      in_session = opens && line.text == kOpening;
      in_other = opens && !in_session;
      if (in_session) shown.sessions.push_back({.line = line.number});
      if (in_other && line.text.starts_with(kOpening)) {
        shown.complaints.push_back({line.number, "flags stand on the line below"});
      }
    } else if (in_session) {
      add_line(line, shown);
    }
  }
  if (in_session) shown.complaints.push_back({shown.sessions.back().line, "it does not end"});
  return shown;
}

}  // namespace lockd
