#include "support/line_client.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "server/log.h"
#include "server/server.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

constexpr std::size_t kTokenSize = 32;

bool is_token(std::string_view word) {
  return word.size() == kTokenSize &&
         word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Where the token of a grant begins, or npos.
std::size_t find_token(std::string_view reply) {
  const std::size_t space = reply.find(' ');
  if (space == std::string_view::npos) return space;
  const std::string_view rest = reply.substr(space + 1);
  return is_token(rest.substr(0, rest.find(' '))) ? space + 1 : std::string_view::npos;
}

}  // namespace

LineClient::LineClient(std::uint16_t port, int receive_buffer, bool tls)
    : ClientSocket({.port = port, .receive_buffer = receive_buffer, .tls = tls}) {}

std::string LineClient::read_line(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::size_t searched = taken_;
  for (;;) {
    if (const std::size_t end = unread_.find('\n', searched); end != std::string::npos) {
      std::string line = unread_.substr(taken_, end - taken_);
      taken_ = end + 1;
      return line;
    }
    unread_.erase(0, std::exchange(taken_, 0));
    searched = unread_.size();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const std::string_view instead = append_some(unread_, left);
    // A line that was begun and never ended is no end to be content with.
    if (instead == kEnd && !unread_.empty()) return "<cut off>" + unread_;
    if (!instead.empty()) return std::string(instead);
  }
}

std::string LineClient::read_some() {
  std::string bytes;
  append_some(bytes, kPatience);
  return bytes;
}

std::string LineClient::ask(std::string_view request) {
  send(request);
  return read_line();
}

std::vector<std::string> LineClient::read_lines(std::size_t count) {
  std::vector<std::string> lines;
  while (lines.size() < count) {
    lines.push_back(read_line());
    if (lines.back().starts_with('<')) break;
  }
  return lines;
}

std::vector<std::string> LineClient::read_to_end() {
  std::vector<std::string> lines;
  do {
    lines.push_back(read_line());
  } while (!lines.back().starts_with('<'));
  return lines;
}

Options line_options() {
  Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.threads = 2;
  if (tests_use_tls()) {
    options.tls_cert = test_authority().certificate("server");
    options.tls_key = test_authority().key("server");
  }
  return options;
}

LineServer::LineServer(const Options& options)
    : server_(std::make_unique<Server>(with_journal(options))), tls_(!options.tls_cert.empty()) {
  static const bool quiet = [] {
    set_up_log(LogLevel::error, LogFormat::text);
    return true;
  }();
  static_cast<void>(quiet);
  if (const std::string error = server_->start(); !error.empty()) {
    std::fprintf(stderr, "the server does not start: %s\n", error.c_str());
    std::abort();
  }
  port_ = server_->port();
}

LineServer::~LineServer() = default;

Options LineServer::with_journal(Options options) {
  if (std::getenv("LOCKD_TEST_WAL") == nullptr || !options.wal.empty()) return options;
  options.wal = journal_.emplace().path();
  return options;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string request(std::string_view command, std::string_view key, std::string_view argument) {
  std::string bytes;
  for (const std::string_view line : {command, key, argument}) {
    bytes += line;
    bytes += '\n';
  }
  return bytes;
}

std::string masked(std::string_view reply) {
  std::string text(reply);
  if (const std::size_t at = find_token(reply); at != std::string_view::npos) {
    text.replace(at, kTokenSize, "<token>");
  }
  return text;
}

std::string token_of(std::string_view reply) {
  const std::size_t at = find_token(reply);
  return at == std::string_view::npos ? std::string() : std::string(reply.substr(at, kTokenSize));
}

void take_many(LineClient& client, int count) {
  std::string requests;
  for (int i = 0; i < count; ++i) {
    requests += request("l", std::to_string(i) + std::string(200, 'k'), "0 1000");
  }
  client.send(requests);
  for (const std::string& reply : client.read_lines(static_cast<std::size_t>(count))) {
    EXPECT_EQ(masked(reply), "ok <token> 1000");
  }
}

std::string await_stats(LineClient& client, std::string_view part) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  for (;;) {
    std::string reply = client.ask(request("stats", "", ""));
    if (reply.find(part) != std::string::npos || reply.starts_with('<')) return reply;
    if (LineClient::Clock::now() > deadline) return reply;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockd
