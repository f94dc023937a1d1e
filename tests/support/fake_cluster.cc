#include "support/fake_cluster.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace lockd::client {
namespace {

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }
std::string last_word(const std::string& text) { return text.substr(text.rfind(' ') + 1); }

}  // namespace

FakeCluster::FakeCluster(std::size_t size, Lie lie) : lie_(std::move(lie)), servers_(size) {
  for (std::size_t index = 0; index < size; ++index) {
    auto server = std::make_unique<LyingServer>([this, index](Peer& peer) { serve(index, peer); });
    addresses_.push_back(server->address());
    const std::lock_guard lock(mutex_);
    servers_[index].server = std::move(server);
  }
}

FakeCluster::~FakeCluster() {
  for (std::size_t index = 0; index < servers_.size(); ++index) kill(index);
}

void FakeCluster::lead(std::size_t server) {
  const std::lock_guard lock(mutex_);
  leader_ = server;
  changed_.notify_all();
}

void FakeCluster::lead_none() {
  const std::lock_guard lock(mutex_);
  leader_.reset();
  changed_.notify_all();
}

void FakeCluster::kill(std::size_t server) {
  std::unique_ptr<LyingServer> dead;
  {
    const std::lock_guard lock(mutex_);
    servers_[server].is_dead = true;
    if (leader_ == server) leader_.reset();
    dead = std::move(servers_[server].server);
    changed_.notify_all();
  }
}

void FakeCluster::hang(std::size_t server) {
  const std::lock_guard lock(mutex_);
  servers_[server].hangs = true;
}

void FakeCluster::go_on(std::size_t server) {
  const std::lock_guard lock(mutex_);
  servers_[server].hangs = false;
  changed_.notify_all();
}

void FakeCluster::name(std::string leader) {
  const std::lock_guard lock(mutex_);
  named_ = std::move(leader);
}

bool FakeCluster::is_held(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return holds_.contains(key);
}

int FakeCluster::asked(std::size_t server, const std::string& command) const {
  const std::lock_guard lock(mutex_);
  const auto& counts = servers_[server].asked;
  const auto found = counts.find(command);
  return found == counts.end() ? 0 : found->second;
}

int FakeCluster::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void FakeCluster::serve(std::size_t index, Peer& peer) {
  std::vector<std::string> granted;
  while (auto asked = peer.read_request()) {
    const auto reply = answer(index, *asked, granted);
    if (!reply || !peer.send(*reply + "\n")) break;
  }
  const std::lock_guard lock(mutex_);
  if (servers_[index].is_dead || !leads(index)) return;
  std::erase_if(holds_, [&](const auto& hold) {
    return std::find(granted.begin(), granted.end(), hold.second) != granted.end();
  });
  changed_.notify_all();
}

std::optional<std::string> FakeCluster::answer(std::size_t index, const Asked& asked,
                                               std::vector<std::string>& granted) {
  std::unique_lock lock(mutex_);
  Server& self = servers_[index];
  ++self.asked[asked.command];
  changed_.wait(lock, [&] { return !self.hangs || self.is_dead; });
  if (self.is_dead) return {};
  if (lie_) {
    lock.unlock();
    auto lie = lie_(index, asked);
    lock.lock();
    if (lie == "cut") return {};
    if (lie) return lie;
  }
  if (asked.command == "ping") return "ok";
  if (!leads(index)) {
    const std::string leader = leader_ ? addresses_[*leader_].to_string() : "-";
    return "error_not_leader " + (named_.empty() ? leader : named_);
  }
  if (asked.command == "barrier") return "ok";
  if (asked.command == "stats") return "ok {\"connections\":1}";
  if (asked.command == "l") return acquire(lock, index, asked, granted);
  if (asked.command == "e")
    return holds_.contains(asked.key) ? "queued" : "acquired " + grant(asked, granted);
  const auto hold = holds_.find(asked.key);
  if (hold == holds_.end() || hold->second != first_word(asked.argument)) return "error";
  if (asked.command == "n") return "ok " + last_word(asked.argument);
  holds_.erase(hold);
  changed_.notify_all();
  return "ok";
}

std::optional<std::string> FakeCluster::acquire(std::unique_lock<std::mutex>& lock,
                                                std::size_t index, const Asked& asked,
                                                std::vector<std::string>& granted) {
  if (holds_.contains(asked.key) && first_word(asked.argument) == "0") return "timeout";
  ++waiting_;
  changed_.wait(lock, [&] {
    return servers_[index].is_dead || !leads(index) || !holds_.contains(asked.key);
  });
  --waiting_;
  if (servers_[index].is_dead || !leads(index)) return {};
  return "ok " + grant(asked, granted);
}

// The token, and the lease that was asked for.
std::string FakeCluster::grant(const Asked& asked, std::vector<std::string>& granted) {
  std::array<char, 33> token{};
  std::snprintf(token.data(), token.size(), "%016x%016x", ++grants_, 0xabc);
  holds_[asked.key] = token.data();
  granted.emplace_back(token.data());
  return std::string(token.data()) + " " + last_word(asked.argument);
}

}  // namespace lockd::client
