// Many threads, blocking and batched calls mixed, on few keys: mutual exclusion by what the holders
// themselves see, fences, and that every wait ends once. Meant for the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/forgetful_journal.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKeys = 4;
constexpr std::uint32_t kPermits = 3;

// What the locks guard. Touched only by holders whose leases are far from over.
struct Guarded {
  std::atomic<int> inside{0};
  std::atomic<Fence> last_fence{0};
};

class Stress {
 public:
  explicit Stress(Engine& engine) : engine_(engine) {}

  void enter(std::size_t key, Kind kind, Fence fence) {
    Guarded& g = kind == Kind::lock ? locks_[key] : semaphores_[key];
    const int limit = kind == Kind::lock ? 1 : static_cast<int>(kPermits);
    EXPECT_LE(g.inside.fetch_add(1) + 1, limit) << "holders-bounded";
    if (kind == Kind::lock) {
      EXPECT_GT(fence, g.last_fence.exchange(fence)) << "fences-rise";
    }
  }
  void leave(std::size_t key, Kind kind) {
    (kind == Kind::lock ? locks_[key] : semaphores_[key]).inside.fetch_sub(1);
  }

  static std::string name(std::size_t key) { return "key-" + std::to_string(key); }
  static std::uint32_t limit(Kind kind) { return kind == Kind::lock ? 1 : kPermits; }

  // Blocking calls, some of them stopped, some timing out.
  void block(unsigned seed, int rounds) {
    std::mt19937 random(seed);
    const std::string holder = "thread-" + std::to_string(seed);
    for (int i = 0; i < rounds; ++i) {
      const std::size_t key = random() % kKeys;
      const Kind kind = random() % 2 == 0 ? Kind::lock : Kind::semaphore;
      const std::string k = name(key);
      std::stop_source stop;
      std::jthread stopper;
      if (random() % 16 == 0) {
        stopper = std::jthread([&stop] {
          std::this_thread::yield();
          stop.request_stop();
        });
      }
      const Duration wait = std::chrono::microseconds(random() % 4 == 0 ? 50 : 5'000'000);
      const auto grant = engine_.acquire({.key = k,
                                          .holder = holder,
                                          .ttl = 600s,
                                          .wait = wait,
                                          .kind = kind,
                                          .limit = limit(kind)},
                                         stop.get_token());
      ++calls;
      if (!grant) {
        EXPECT_TRUE(grant.outcome == Outcome::timeout || grant.outcome == Outcome::cancelled)
            << describe(grant.outcome);
        continue;
      }
      enter(key, kind, grant->fence);
      const HoldId hold{.key = k, .holder = holder, .fence = grant->fence, .kind = kind};
      EXPECT_TRUE(random() % 4 != 0 || engine_.renew(hold, 700s));
      leave(key, kind);
      EXPECT_EQ(engine_.release(hold), Outcome::ok);
    }
  }

  std::atomic<std::uint64_t> calls{0};

 private:
  Engine& engine_;
  Guarded locks_[kKeys];
  Guarded semaphores_[kKeys];
};

// A thread that serves several sessions, as a server's loop does: it asks, cancels, disconnects.
class Loop final : public Listener {
 public:
  Loop(Engine& engine, Stress& stress, unsigned seed)
      : engine_(engine), stress_(stress), random_(seed), first_session_(seed * 1'000'000 + 1) {}

  void run(int rounds) {
    std::vector<Client> clients(8);
    for (std::size_t i = 0; i < clients.size(); ++i) clients[i].session.id = first_session_ + i;
    for (int i = 0; i < rounds; ++i) {
      Batch batch(engine_);
      take_in(clients);
      for (Client& client : clients) step(batch, client);
      engine_.wait_durable(batch.commit());
      if (i % 8 == 0) std::this_thread::yield();
    }
    Batch batch(engine_);
    for (Client& client : clients) disconnect(batch, client);
    batch.commit();
    while (settled_count() < queued_) std::this_thread::yield();  // settled-once: every one of them
    EXPECT_EQ(settled_count(), queued_);
  }

 private:
  struct Client {
    Session session;
    enum { idle, waiting, holding } state = idle;
    WaitId wait;
    std::uint64_t request = 0;
    std::uint64_t secret = 0;
    std::size_t key = 0;
    Kind kind = Kind::lock;
    Fence fence = 0;
  };

  void settled(const Settled& settled) noexcept override {
    MutexLock lock(mutex_);
    inbox_.push_back(settled);
    ++settled_count_;
  }
  std::uint64_t settled_count() {
    MutexLock lock(mutex_);
    return settled_count_;
  }

  void take_in(std::vector<Client>& clients) {
    std::vector<Settled> inbox;
    {
      MutexLock lock(mutex_);
      inbox.swap(inbox_);
    }
    for (const Settled& s : inbox) {
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

  void hold(Client& client, Fence fence) {
    client.state = Client::holding;
    client.fence = fence;
    stress_.enter(client.key, client.kind, fence);
  }

  void step(Batch& batch, Client& client) {
    const auto dice = random_() % 100;
    if (dice < 3) {
      disconnect(batch, client);
    } else if (client.state == Client::idle) {
      ask(batch, client);
    } else if (client.state == Client::waiting) {
      if (dice < 10) batch.cancel(client.wait);  // the answer comes as any other
    } else if (dice < 70) {
      const std::string key = Stress::name(client.key);
      stress_.leave(client.key, client.kind);
      EXPECT_EQ(batch.release({.key = key,
                               .holder = {&client.session, client.secret},
                               .fence = client.fence,
                               .kind = client.kind}),
                Outcome::ok);
      client.state = Client::idle;
    }
  }

  void ask(Batch& batch, Client& client) {
    client.key = random_() % kKeys;
    client.kind = random_() % 2 == 0 ? Kind::lock : Kind::semaphore;
    client.secret = random_();
    client.request = ++queued_;
    const std::string key = Stress::name(client.key);
    const AcquireRequest request{.key = key,
                                 .holder = {&client.session, client.secret},
                                 .ttl = 600s,
                                 .wait = std::chrono::microseconds(random_() % 100'000 + 1),
                                 .kind = client.kind,
                                 .limit = Stress::limit(client.kind)};
    const Answer answer = batch.acquire(request, this, client.request);
    ++stress_.calls;
    if (answer.outcome != Outcome::queued) --queued_;
    if (answer.outcome == Outcome::ok) hold(client, answer.grant.fence);
    if (answer.outcome == Outcome::queued) {
      client.state = Client::waiting;
      client.wait = answer.wait;
    }
  }

  void disconnect(Batch& batch, Client& client) {
    if (client.state == Client::holding) stress_.leave(client.key, client.kind);
    batch.end_session(client.session);
    // A wait that was granted in the same moment is the session's no more: its hold went with it.
    client = Client{};
    client.session.id = first_session_ + 100 + next_session_++;
  }

  Engine& engine_;
  Stress& stress_;
  std::mt19937_64 random_;
  const SessionId first_session_;
  SessionId next_session_ = 0;
  std::uint64_t queued_ = 0;

  Mutex mutex_;
  std::vector<Settled> inbox_ GUARDED_BY(mutex_);
  std::uint64_t settled_count_ GUARDED_BY(mutex_) = 0;
};

// Counts for itself, and must come to the counts that each occurrence tells.
class Spectator final : public Observer {
 public:
  void occurred(std::span<const Occurrence> occurrences, Position) noexcept override {
    MutexLock lock(mutex_);
    for (const Occurrence& o : occurrences) see(o);
  }
  std::uint64_t grants() {
    MutexLock lock(mutex_);
    return grants_;
  }

 private:
  struct Key {
    std::uint32_t holders = 0;
    std::uint32_t waiters = 0;
  };

  void see(const Occurrence& o) REQUIRES(mutex_) {
    Key& key = keys_[{o.kind, std::string(o.key)}];
    switch (o.type) {
      case Occurrence::Type::queued: ++key.waiters; break;
      case Occurrence::Type::gave_up: --key.waiters; break;
      case Occurrence::Type::granted:
        ++grants_;
        ++key.holders;
        if (o.place != 0) --key.waiters;
        break;
      default: --key.holders;
    }
    EXPECT_EQ(key.holders, o.holders) << o.key;
    EXPECT_EQ(key.waiters, o.waiters) << o.key;
  }

  Mutex mutex_;
  std::map<std::pair<Kind, std::string>, Key> keys_ GUARDED_BY(mutex_);
  std::uint64_t grants_ GUARDED_BY(mutex_) = 0;
};

// Is looked through now and then.
class Passer final : public Observer {
 public:
  void occurred(std::span<const Occurrence> occurrences, Position position) noexcept override {
    EXPECT_GT(position, 0u);
    for (const Occurrence& o : occurrences) EXPECT_LE(o.holders, o.limit) << "holders-bounded";
  }
};

// As a dashboard does it, beside everything else.
void look_around(Engine& engine) {
  for (ListPlace place; !place.done;) {
    engine.list_some(
        place, 3, [](const KeyStatus& s) { EXPECT_LE(s.holders, s.limit) << "holders-bounded"; });
  }
  engine.fence("key-0");
  engine.status(Kind::semaphore, "key-1");
  const Figures figures = engine.figures();
  EXPECT_LE(figures.contended, figures.grants);
  EXPECT_LE(figures.idle_keys, figures.keys);
}

void stress(Engine& engine, Observer& observer, bool steadily, int rounds) {
  Stress stress(engine);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&, i] { stress.block(i, rounds); });
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { Loop(engine, stress, 100 + i).run(rounds); });
  }
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      look_around(engine);
      if (!steadily) observer.look(!observer.is_looking());
      std::this_thread::sleep_for(1ms);
    }
  });
  for (std::thread& t : threads) t.join();
  done = true;
  watcher.join();
  engine.list([](const KeyStatus& s) {
    EXPECT_EQ(s.holders, 0u) << s.key;
    EXPECT_EQ(s.waiters, 0u) << s.key;
  });
  const Figures figures = engine.figures();
  EXPECT_EQ(figures.locks_held + figures.semaphore_holders, 0u);
  EXPECT_EQ(figures.lock_waiters + figures.semaphore_waiters, 0u);
  EXPECT_EQ(figures.grants, figures.releases + figures.expiries + figures.disconnects);
  EXPECT_EQ(figures.queued, figures.contended + figures.timeouts + figures.cancels);
  std::printf("%llu calls\n", static_cast<unsigned long long>(stress.calls.load()));
}

constexpr int kRounds = 25'000;
constexpr Duration kShort = 20us;

TEST(EngineStress, BlockingAndBatchedCallsMixed) {
  Spectator spectator;
  spectator.look(true);
  Engine engine({.shards = 2, .observer = &spectator});
  stress(engine, spectator, true, kRounds);
  EXPECT_EQ(engine.figures().grants, spectator.grants());
}

TEST(EngineStress, WithAJournal) {
  ForgetfulJournal journal;
  Passer passer;
  Engine engine({.shards = 2, .journal = &journal, .observer = &passer});
  stress(engine, passer, false, kRounds / 5);
}

// The caps hold exactly, whoever asks at once, and while idle keys come and go.
TEST(EngineStress, TheBudgetIsNeverExceededAndNeverRefusesWhatFits) {
  constexpr std::uint64_t kKeysMax = 16;
  Engine engine({.keys_max = kKeysMax, .idle_max = 0s, .gc_interval = 1ms});
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> held = 0;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRounds; ++i) {
        // Four threads with four keys each at most: there is always room for one's own.
        std::vector<std::pair<std::string, Fence>> mine;
        for (int k = 0; k < 4; ++k) {
          const std::string key = std::to_string(t) + "-" + std::to_string(random() % 1'000'000);
          const auto grant = engine.acquire({.key = key, .holder = "h", .ttl = 600s});
          ASSERT_TRUE(grant) << describe(grant.outcome);
          EXPECT_LE(held.fetch_add(1) + 1, kKeysMax);
          mine.emplace_back(key, grant->fence);
        }
        for (const auto& [key, fence] : mine) {
          held.fetch_sub(1);
          engine.release({.key = key, .holder = "h", .fence = fence});
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// Leases of a few microseconds, ended by the sweeper or by whoever comes first; nobody releases.
TEST(EngineStress, ShortLeasesAreNeverPassedOnEarly) {
  Engine engine({.shards = 1});
  Mutex mutex;
  std::map<Fence, Time> expiry_of;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds / 10; ++i) {
        const std::string holder = std::to_string(t) + "-" + std::to_string(i);
        const auto grant =
            engine.acquire({.key = "k", .holder = holder, .ttl = kShort, .wait = 60s});
        ASSERT_TRUE(grant);
        MutexLock lock(mutex);
        EXPECT_TRUE(expiry_of.emplace(grant->fence, grant->expires_at).second) << "fences-rise";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  Time last;
  for (const auto& [fence, expires_at] : expiry_of) {
    EXPECT_GE(expires_at - kShort, last) << "lease-honoured: fence " << fence;
    last = expires_at;
  }
}

}  // namespace
}  // namespace lockd
