// Records a history of three servers under load, while everything is broken that can be.
//
//   record_history FOLDER [--operations N] [--faults N] [--seed N]
//
// The servers: p, plain (lines and HTTP), whose connections release what they hold; t, over TLS,
// whose connections do not; m, in this process, with callers of its engine beside its clients. Each
// keeps a journal. FOLDER/history.jsonl is the history; the journals stay beside it.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "histories/actor.h"
#include "histories/caller.h"
#include "histories/chaos_proxy.h"
#include "histories/client_pool.h"
#include "histories/history_file.h"
#include "histories/ladder.h"
#include "histories/nemesis.h"
#include "histories/recorder.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace {

using namespace lockd;
using namespace lockd::histories;
using namespace std::chrono_literals;

struct Order {
  std::string folder;
  std::uint64_t operations = 2'000'000;
  std::uint64_t faults = 100;
  std::uint64_t seed = 0;
};

class Run {
 public:
  explicit Run(const Order& order)
      : order_(order),
        random_(order.seed),
        recording_(order.seed),
        plain_(settings("p", false, true)),
        sealed_(settings("t", true, false)),
        hosting_(settings("m", false, true)),
        proxy_(random_()),
        clients_(random_()) {}

  void play() {
    for (ServerUnderTest* subject : all()) {
      subject->start();
      add_keys(*subject);
    }
    add_actors(plain_, {.direct = 24, .proxied = 24}, false);
    add_actors(plain_, {.direct = 10, .proxied = 10}, true);
    add_actors(sealed_, {.direct = 16, .proxied = 16}, false);
    add_actors(sealed_, {.direct = 4, .proxied = 4}, true);
    add_actors(hosting_, {.direct = 8, .proxied = 8}, false);
    add_actors(hosting_, {.direct = 4, .proxied = 4}, true);
    proxy_.start();
    clients_.start();
    for (int i = 0; i < 3; ++i) callers_.push_back(caller());
    for (ServerUnderTest* subject : all()) {
      ladders_.push_back(std::make_unique<Ladder>(recording_, *subject,
                                                  rings_[subject->settings().number].ladder));
    }
    try {
      be_broken();
    } catch (...) {
      end_it();
      throw;
    }
    come_to_rest();
  }

 private:
  struct Ring : KeyRing {
    std::vector<std::uint32_t> ladder;
    std::vector<PlannedKey> own;
  };
  struct Share {
    int direct;
    int proxied;
  };

  std::vector<ServerUnderTest*> all() { return {&plain_, &sealed_, &hosting_}; }

  ServerUnderTest::Settings settings(const std::string& name, bool tls, bool auto_release) {
    const std::string directory = order_.folder + "/" + name;
    std::filesystem::create_directories(directory);
    return {.name = name,
            .number = recording_.add_server(name, auto_release),
            .tls = tls,
            .auto_release = auto_release,
            .directory = directory};
  }

  void add_keys(const ServerUnderTest& subject) {
    Ring& ring = rings_[subject.settings().number];
    const auto add = [&](const std::string& name, int i) {
      return recording_.add_key(subject.settings().name + "." + name + "-" + std::to_string(i));
    };
    for (int i = 0; i < 48; ++i) ring.shared.push_back({.key = add("lock", i)});
    for (int i = 0; i < 12; ++i) {
      ring.shared.push_back({.key = add("sem", i),
                             .kind = Kind::semaphore,
                             .limit = 2 + static_cast<std::uint32_t>(i % 3)});
    }
    for (int i = 0; i < 2; ++i) ring.wanted.push_back({.key = add("wanted", i)});
    for (int i = 0; i < 2; ++i) {
      ring.wanted.push_back({.key = add("wanted-sem", i), .kind = Kind::semaphore, .limit = 2});
    }
    for (int i = 0; i < 6; ++i) {
      auto& group = ring.groups.emplace_back();
      for (int seat = 0; seat < 3; ++seat) group.push_back({.key = add("seat", 3 * i + seat)});
      group.push_back({.key = add("seat-sem", i), .kind = Kind::semaphore, .limit = 2});
    }
    for (int i = 0; i < 8; ++i) ring.ladder.push_back(add("ladder", i));
    for (int i = 0; i < 80; ++i) ring.own.push_back({.key = add("own", i)});
  }

  Plan plan(const ServerUnderTest& subject, bool named) {
    Ring& ring = rings_[subject.settings().number];
    const PlannedKey own = ring.own[owned_[subject.settings().number]++];
    return {recording_, ring, {.named = named, .own = own}, random_()};
  }

  void add_actors(ServerUnderTest& subject, Share share, bool http) {
    const std::uint16_t port = proxy_.listen(subject.settings().number, [&subject, http] {
      const ServerUnderTest::Place place = subject.place();
      return ChaosProxy::Upstream{http ? place.http_port : place.line_port, place.life};
    });
    for (int i = 0; i < share.direct + share.proxied; ++i) {
      Actor::Role role{&subject, http};
      if (i >= share.direct) role.proxy_ports = {port};
      clients_.add(std::make_unique<Actor>(recording_, scribe_, proxy_, role, plan(subject, http)));
    }
  }

  std::unique_ptr<Caller> caller() {
    return std::make_unique<Caller>(recording_, hosting_, plan(hosting_, true));
  }

  void be_broken() {
    Nemesis nemesis(recording_, {{&plain_, &sealed_}, all(), &proxy_, &clients_}, random_());
    const Instant begun = now();
    const std::size_t least = std::max<std::size_t>(order_.faults, nemesis.kinds());
    while (recording_.operations() < order_.operations || recording_.faults() < least) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100 + random_() % 300));
      nemesis.strike();
    }
    nemesis.heal();
    std::this_thread::sleep_for(1s);  // what works now must go on working
    std::printf("%.1f s under faults\n", static_cast<double>(now() - begun) / kSecond);
  }

  void come_to_rest() {
    dismiss(60 * kSecond);
    for (ServerUnderTest* subject : all()) take_everything(*subject);
    for (ServerUnderTest* subject : all()) subject->stop();
    write_history(recording_.finish(), order_.folder + "/history.jsonl");
  }

  // Something went wrong that is no matter of a history; but what led to it is.
  void end_it() {
    dismiss(0);
    write_history(recording_.finish(), order_.folder + "/history.jsonl");
  }

  void dismiss(Instant patience) {
    ladders_.clear();
    for (const auto& caller : callers_) caller->finish();
    callers_.clear();
    if (!clients_.finish(patience)) std::printf("some clients did not come to rest\n");
  }

  // Once the faults are over, everything can be had.
  void take_everything(ServerUnderTest& subject) {
    const Ring& ring = rings_[subject.settings().number];
    LineClient client(subject.place().line_port, 0, subject.settings().tls);
    const std::uint64_t conn = recording_.new_conn();
    const std::uint32_t proc = recording_.new_proc();
    std::vector<std::vector<PlannedKey>> all = ring.groups;
    all.insert(all.end(), {ring.shared, ring.wanted, ring.own});
    for (const std::vector<PlannedKey>& keys : all) {
      for (const PlannedKey& key : keys) {
        Operation operation{.ttl = kSecond,
                            .timeout = 30 * kSecond,
                            .conn = conn,
                            .proc = proc,
                            .life = subject.place().life,
                            .key = key.key,
                            .limit = key.limit,
                            .server = subject.settings().number,
                            .kind = key.kind,
                            .via = subject.settings().tls ? Via::tls : Via::tcp};
        ask_by_line(client, recording_, operation);
        scribe_.note(operation);
      }
    }
  }

  const Order order_;
  std::mt19937_64 random_;
  Recording recording_;
  ProcessUnderTest plain_;
  ProcessUnderTest sealed_;
  HostUnderTest hosting_;
  ChaosProxy proxy_;
  ClientPool clients_;
  Recording::Scribe& scribe_ = recording_.add_scribe();
  std::array<Ring, 3> rings_;
  std::array<std::size_t, 3> owned_{};
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<std::unique_ptr<Ladder>> ladders_;
};

}  // namespace

int main(int argc, char** argv) {
  Order order;
  return record(argc, argv, order.folder, order.seed,
                {{"--operations", &order.operations}, {"--faults", &order.faults}},
                [&] { Run(order).play(); });
}
