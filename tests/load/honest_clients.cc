#include "load/honest_clients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/testing/eventually.h"
#include "support/http_client.h"

namespace lockd {

using namespace std::chrono_literals;

double metric(const ServerProcess& server, const std::string& name) {
  HttpClient client(ClientSocket::To{.port = server.http_port()});
  client.fields = "Authorization: Bearer " + kHonestToken + "\r\n";
  const std::string text = client.get("/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

HonestClients::HonestClients(const ServerProcess& server, Setup setup)
    : server_(server), setup_(std::move(setup)) {
  auto holder = std::make_shared<LineClient>(connect());
  const std::string grant = holder->ask(request("l", "kept", "0 5"));
  EXPECT_EQ(masked(grant), "ok <token> 5");
  start("renewal", 100ms, [holder, renewal = request("n", "kept", token_of(grant) + " 5")] {
    const std::string reply = holder->ask(renewal);
    return reply == "ok 5" ? "" : reply;
  });

  auto taker = std::make_shared<LineClient>(connect());
  start("lock and release", 1ms, [this, taker] {
    const std::string taken = taker->ask(request("l", "taken", "0 5"));
    const std::string released = taker->ask(request("r", "taken", token_of(taken)));
    ++rounds_;
    return masked(taken) == "ok <token> 5" && released == "ok" ? "" : taken + ", " + released;
  });

  if (setup_.comes_anew) {
    start("connect and ask", 10ms, [this] {
      const std::string reply = connect().ask(request("ping", "", ""));
      return reply == "ok" ? "" : reply;
    });
  }

  if (!setup_.reads_metrics) return;
  auto monitor =
      std::make_shared<HttpClient>(ClientSocket::To{.port = server.http_port(), .tls = setup_.tls});
  if (!setup_.token.empty()) monitor->fields = "Authorization: Bearer " + setup_.token + "\r\n";
  start("/metrics", 100ms, [monitor] {
    const HttpReply reply = monitor->get("/metrics");
    return reply.status == 200 ? "" : std::to_string(reply.status) + " " + reply.body;
  });
}

HonestClients::~HonestClients() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  const MutexLock lock(mutex_);
  std::printf("%s: the slowest of each: %s\n", setup_.attack.c_str(), report_.c_str());
  EXPECT_EQ(unexpected_, "") << "beside " << setup_.attack;
}

void HonestClients::await_rounds(std::size_t rounds) const {
  EXPECT_TRUE(eventually([this, goal = rounds_ + rounds] { return rounds_ >= goal; }));
}

LineClient HonestClients::connect() const {
  LineClient client(server_.port(), 0, setup_.tls);
  if (!setup_.token.empty()) {
    EXPECT_EQ(client.ask(request("auth", "_", setup_.token)), "ok");
  }
  return client;
}

void HonestClients::start(const char* what, std::chrono::milliseconds pause, Round round) {
  threads_.emplace_back([this, what, pause, round = std::move(round)] { run(what, pause, round); });
}

void HonestClients::run(const char* what, std::chrono::milliseconds pause, const Round& round) {
  Clock::duration slowest{};
  std::string unexpected;
  while (!stop_ && unexpected.empty()) {
    const auto asked = Clock::now();
    unexpected = round();
    slowest = std::max(slowest, Clock::now() - asked);
    std::this_thread::sleep_for(pause);
  }
  const double ms = std::chrono::duration<double, std::milli>(slowest).count();
  char text[64];
  std::snprintf(text, sizeof(text), "%s %.1f ms", what, ms);
  const MutexLock lock(mutex_);
  report_ += (report_.empty() ? "" : ", ") + std::string(text);
  if (!unexpected.empty()) unexpected_ += std::string(what) + ": " + unexpected + "\n";
}

}  // namespace lockd
