#include "engine/testing/stress_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace lockd {

using namespace std::chrono_literals;

void StressLoop::run(int rounds) {
  std::vector<Client> clients(8);
  for (std::size_t i = 0; i < clients.size(); ++i) clients[i].session.id = first_session_ + i;
  for (int i = 0; i < rounds; ++i) {
    Batch batch(engine_);
    apply_results(clients);
    for (Client& client : clients) step(batch, client);
    engine_.wait_durable(batch.commit());
    if (i % 8 == 0) std::this_thread::yield();
  }
  Batch batch(engine_);
  for (Client& client : clients) disconnect(batch, client);
  batch.commit();
  while (settled_count() < queued_) std::this_thread::yield();  // settled-once
  EXPECT_EQ(settled_count(), queued_);
}

void StressLoop::on_wait_done(const WaitResult& result) noexcept {
  MutexLock lock(mutex_);
  inbox_.push_back(result);
  ++settled_count_;
}

std::uint64_t StressLoop::settled_count() {
  MutexLock lock(mutex_);
  return settled_count_;
}

void StressLoop::apply_results(std::vector<Client>& clients) {
  std::vector<WaitResult> inbox;
  {
    MutexLock lock(mutex_);
    inbox.swap(inbox_);
  }
  for (const WaitResult& s : inbox) {
    for (Client& c : clients) {
      if (c.state != Client::waiting || c.request != s.id) continue;
      if (s.outcome == Outcome::ok) {
        hold(c, s.grant.fence);
      } else {
        EXPECT_TRUE(s.outcome == Outcome::timeout || s.outcome == Outcome::cancelled);
        c.state = Client::idle;
      }
    }
  }
}

void StressLoop::hold(Client& client, Fence fence) {
  client.state = Client::holding;
  client.fence = fence;
  keys_.enter(client.key, client.kind, fence);
}

void StressLoop::step(Batch& batch, Client& client) {
  const auto dice = random_() % 100;
  if (dice < 3) {
    disconnect(batch, client);
  } else if (client.state == Client::idle) {
    acquire(batch, client);
  } else if (client.state == Client::waiting) {
    if (dice < 10) batch.cancel(client.wait);  // the listener gets the result
  } else if (dice < 70) {
    release(batch, client);
  }
}

void StressLoop::acquire(Batch& batch, Client& client) {
  client.key = random_() % GuardedKeys::kKeys;
  client.kind = random_() % 2 == 0 ? Kind::lock : Kind::semaphore;
  client.secret = random_();
  client.request = ++queued_;
  const std::string key = GuardedKeys::name(client.key);
  const AcquireRequest request{
      .keys = KeyItem(key, client.kind, Mode::exclusive, GuardedKeys::limit(client.kind)),
      .holder = {&client.session, client.secret},
      .ttl = 600s,
      .wait = std::chrono::microseconds(random_() % 100'000 + 1)};
  const Answer answer = batch.acquire(request, this, client.request);
  ++keys_.calls;
  if (answer.outcome != Outcome::queued) --queued_;
  if (answer.outcome == Outcome::ok) hold(client, answer.grant.fence);
  if (answer.outcome == Outcome::queued) {
    client.state = Client::waiting;
    client.wait = answer.wait;
  }
}

void StressLoop::release(Batch& batch, Client& client) {
  const std::string key = GuardedKeys::name(client.key);
  keys_.leave(client.key, client.kind);
  EXPECT_EQ(batch
                .release({.keys = KeyItem(key, client.kind),
                          .holder = {&client.session, client.secret},
                          .fence = client.fence})
                .outcome,
            Outcome::ok);
  client.state = Client::idle;
}

void StressLoop::disconnect(Batch& batch, Client& client) {
  if (client.state == Client::holding) keys_.leave(client.key, client.kind);
  batch.end_session(client.session);
  // A grant that arrives later belonged to the old session and ended with it.
  client = Client{};
  client.session.id = first_session_ + 100 + next_session_++;
}

}  // namespace lockd
