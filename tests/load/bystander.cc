#include "load/bystander.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockd {

using namespace std::chrono_literals;

Bystander::Bystander(const ServerProcess& server)
    : client_(server.connect()), thread_([this] { run(); }) {
  await_rounds(1);
}

Bystander::~Bystander() {
  stop_ = true;
  thread_.join();
  EXPECT_EQ(unexpected_, "");
  EXPECT_LT(slowest_, kSlowest);
}

void Bystander::await_rounds(std::size_t rounds) const {
  const std::size_t goal = rounds_ + rounds;
  const auto deadline = Clock::now() + LineClient::kPatience;
  while (rounds_ < goal && !failed_) {
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "the bystander is not served";
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

void Bystander::run() {
  while (!stop_) {
    const std::string grant = timed_ask(request("l", "bystander", "0 60"));
    const std::string released = timed_ask(request("r", "bystander", token_of(grant)));
    if (masked(grant) != "ok <token> 60" || released != "ok") {
      unexpected_ = grant + ", " + released;
      failed_ = true;
      return;
    }
    ++rounds_;
    std::this_thread::sleep_for(1ms);
  }
}

std::string Bystander::timed_ask(const std::string& request) {
  const auto asked = Clock::now();
  std::string reply = client_.ask(request);
  slowest_ = std::max(slowest_, Clock::now() - asked);
  return reply;
}

}  // namespace lockd
