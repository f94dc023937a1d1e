// A chain is made of a journal, and a journal of a chain: nothing is lost, nothing is added, and
// whatever happens in between leaves all of it or none.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/chance.h"
#include "base/testing/test_size.h"
#include "crash/process.h"
#include "golden/golden.h"
#include "journal/inspect.h"
#include "journal/posix_storage.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/batch.h"
#include "lockd/file_journal.h"
#include "replication/chain_copy.h"

namespace lockd::golden {
namespace {

using namespace std::chrono_literals;

const EtcdKeys kKeys("golden");
constexpr Time kBegan{1'700'000'000'000'000'000};

struct QuietEtcd : etcd::ModelEtcd {
  QuietEtcd() : ModelEtcd(1, etcd::kNoFaults) { move_to(kBegan); }
};

void take(Batch& batch, const AcquireRequest& request) {
  if (batch.acquire(request).outcome != Outcome::ok) throw std::runtime_error("not granted");
}

// What a server held that was stopped: some of everything, and `locks` besides.
crash::Files journal_of(const std::string& whose, int locks = 40) {
  crash::SimulatedDisk disk;
  crash::Process process(disk, {});
  Batch batch(process.engine);
  const auto pass = [&](Duration time) {
    batch.commit();
    while (process.log.turn() == Duration::zero()) {
    }
    disk.advance(time);
  };
  const ClientIdentity client{.name = "alice", .peer = "10.0.0.9:1", .note = "deploy"};
  Session alice{.id = 1, .client = std::make_shared<const ClientIdentity>(client)};
  take(batch, {.keys = whose, .holder = "cart-7", .ttl = 600s, .note = "nightly", .peer = "h:2"});
  take(batch, {.keys = "of a session", .holder = {&alice, 0xa1}, .ttl = 300s});
  for (const char* const reader : {"r1", "r2", "r3"}) {
    take(batch, {.keys = shared("read"), .holder = reader, .ttl = 100s});
    pass(1ms);
  }
  take(batch, {.keys = semaphore("belt", 5, 3), .holder = "a", .ttl = 90s});
  take(batch, {.keys = semaphore("belt", 5), .holder = "b", .ttl = 90s});
  take(batch, {.keys = semaphore("slots", 2), .holder = "a", .ttl = 90s});
  batch.resize("slots", 7, "more work", "admin");
  batch.acquire({.keys = std::vector<KeyItem>{"left", "right", semaphore("rails", 4, 2)},
                 .holder = "both",
                 .ttl = 50s});
  for (int i = 0; i < locks; ++i) {
    take(batch, {.keys = "lock-" + std::to_string(i), .holder = "many", .ttl = 600s});
  }
  pass(3s);
  // The largest fence is that of a key that nobody holds.
  const Fence last = batch.acquire({.keys = "idle", .holder = "x", .ttl = 9s}).grant.fence;
  batch.release({"idle", "x", last});
  pass(1s);
  process.log.close();
  return *disk.after_power_failure(crash::Survival::way(0));
}

// Those that are held, without what time has done to their leases.
std::string names_of(const std::string& holds) {
  std::string names;
  for (std::size_t at = 0; at < holds.size(); at = holds.find('\n', at) + 1) {
    const std::string line = holds.substr(at, holds.find('\n', at) - at);
    if (!line.starts_with("fences")) names += line.substr(0, line.find(", until")) + "\n";
  }
  return names;
}

Fence largest_fence(const std::string& holds) {
  return std::stoull(holds.substr(holds.rfind(' ') + 1));
}

// Servers are started until one leads, as with faults some begin anew.
std::unique_ptr<Node> leader_of(etcd::ModelEtcd& etcd) {
  static int names = 0;
  std::string why;
  for (int lives = 0; lives < 20; ++lives) {
    std::unique_ptr<Node> node(new Node(Node::of_no_time(etcd, "n" + std::to_string(++names))));
    try {
      node->take_over();
      return node;
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
  }
  throw std::runtime_error("nobody leads: " + why);
}

TEST(ChainCopy, ThereAndBackAgainNothingIsLost) {
  const crash::Files journal = journal_of("there");
  QuietEtcd etcd;
  import_chain(etcd, journal);
  EXPECT_EQ(held_in(export_chain(etcd)), held_in(journal));
  const auto node = leader_of(etcd);
  EXPECT_EQ(node->holds(), held_in(journal));

  Batch batch(node->engine());
  const Grant next = batch.acquire({.keys = "new", .holder = "n", .ttl = 60s}).grant;
  EXPECT_GT(next.fence, largest_fence(held_in(journal)));
  batch.commit();
  node->pass(1s);
  const std::string exported = held_in(export_chain(etcd));
  EXPECT_EQ(names_of(exported), names_of(node->holds()));
  EXPECT_NE(exported.find("lock 'new'"), std::string::npos);
  EXPECT_EQ(largest_fence(exported), next.fence);
}

// More than is written, or sent, at once.
TEST(ChainCopy, MuchIsCopiedToo) {
  const crash::Files journal = journal_of("much", 30'000);
  QuietEtcd etcd;
  import_chain(etcd, journal);
  EXPECT_EQ(held_in(export_chain(etcd)), held_in(journal));
}

TEST(ChainCopy, AJournalThatIsImportedStaysAsItWas) {
  crash::SimulatedDisk disk(journal_of("stays"));
  disk.watch = [](crash::SimulatedDisk::Operation operation, const std::string& name) {
    ADD_FAILURE() << crash::SimulatedDisk::name_of(operation) << " " << name;
  };
  QuietEtcd etcd;
  const auto summary = import_chain(etcd, disk);
  EXPECT_EQ(summary.holds, 51U);
  EXPECT_EQ(summary.semaphore_holds, 4U);
}

// On the boot that wrote it, time that has passed since counts; on another nothing does, whatever
// the wall clocks say.
TEST(ChainCopy, ALeaseHasWhatWasLeftOfIt) {
  const crash::Files journal = journal_of("left", 0);
  const auto left_after = [&](const std::function<void(crash::SimulatedDisk&)>& pass) {
    crash::SimulatedDisk disk(journal);
    const Time last = [&] {
      const LogScan found = scan(disk, [](std::string_view) {});
      const SegmentSummary& segment = found.segments.back();
      disk.now.boot_ns =
          segment.header.opened.boot_ns + (segment.engine_time.ns - segment.header.engine_time.ns);
      return segment.engine_time;
    }();
    EXPECT_NE(last, Time{});
    pass(disk);
    QuietEtcd etcd;
    import_chain(etcd, disk);
    const std::string holds = leader_of(etcd)->holds();
    const std::size_t line = holds.find("lock 'left' fence 1:");
    return Duration(std::stoll(holds.substr(holds.find("until ", line) + 6)));
  };
  const Duration at_once = left_after([](crash::SimulatedDisk&) {});
  EXPECT_GT(at_once, 590s);
  EXPECT_LT(at_once, 600s);
  EXPECT_EQ(left_after([](crash::SimulatedDisk& disk) { disk.now.boot_ns += 60'000'000'000; }),
            at_once - 60s);
  EXPECT_EQ(left_after([](crash::SimulatedDisk& disk) {
              disk.now.boot_id = {9};
              disk.now.boot_ns = 1;
              disk.now.wall_ns += 500'000'000'000;
            }),
            at_once);
  // What has ended meanwhile is not taken from who may still renew it.
  EXPECT_EQ(left_after([](crash::SimulatedDisk& disk) { disk.now.boot_ns += 900'000'000'000; }),
            ReplicatedJournalOptions{}.detect);
}

// Killed after so many changes that it makes, or done. Returns how many it made.
int import_until(etcd::ModelEtcd& etcd, const crash::Files& journal, int kill_at) {
  const etcd::Revision began = etcd.store.revision();
  try {
    import_chain(etcd, journal, [&] {
      if (etcd.store.revision() - began >= kill_at) throw std::exception();
    });
  } catch (const std::exception&) {
  }
  return static_cast<int>(etcd.store.revision() - began);
}

// After each change that it makes, and however much of it is still on its way.
TEST(ChainCopy, AnImportThatIsKilledLeavesAllOrNothing) {
  const crash::Files journal = journal_of("killed", 200);
  const std::string whole = held_in(journal);
  int changes = 0;
  for (int kill_at = 0; kill_at <= std::max(changes, 8); ++kill_at) {
    QuietEtcd etcd;
    changes = std::max(changes, import_until(etcd, journal, kill_at) + 1);
    const bool is_whole = etcd.store.find(kKeys.head) != nullptr;
    EXPECT_EQ(etcd.store.find(kKeys.leader) != nullptr, kill_at > 0 && !is_whole) << kill_at;

    const auto first = leader_of(etcd);
    EXPECT_EQ(names_of(first->holds()), is_whole ? names_of(whole) : "") << kill_at;
    // Whoever reads the chain from its beginning finds what the first leader has, and no more.
    Batch batch(first->engine());
    for (int i = 0; i < 60; ++i) {
      take(batch, {.keys = "new-" + std::to_string(i), .holder = "n", .ttl = 60s});
      batch.commit();
      first->pass(5ms);
      if (i % 20 == 0) {
        EXPECT_EQ(names_of(held_in(export_chain(etcd))), names_of(first->holds())) << kill_at;
      }
    }
    const std::string held = names_of(first->holds());
    first->resign();
    EXPECT_EQ(names_of(leader_of(etcd)->holds()), held) << kill_at;
  }
  EXPECT_GT(changes, 6);
}

TEST(ChainCopy, AnImportThatWasKilledCanBeDoneAgain) {
  const crash::Files journal = journal_of("again", 200);
  for (int kill_at = 0;; ++kill_at) {
    QuietEtcd etcd;
    import_until(etcd, journal, kill_at);
    if (etcd.store.find(kKeys.head) != nullptr) break;
    import_chain(etcd, journal);
    EXPECT_EQ(leader_of(etcd)->holds(), held_in(journal)) << kill_at;
  }
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ChainCopy, WhereThereIsAClusterNothingIsImported) {
  const crash::Files journal = journal_of("refused");
  const auto refusal = [&](etcd::ModelEtcd& etcd) {
    const etcd::Revision before = etcd.store.revision();
    const std::string error = error_of([&] { import_chain(etcd, journal); });
    EXPECT_EQ(etcd.store.revision(), before) << "it has changed something";
    return error;
  };
  const std::string there =
      "there is a cluster golden in etcd already: import under another name (--etcd-cluster), or "
      "stop its servers and remove it (etcdctl del --prefix /golden/)";
  QuietEtcd imported;
  import_chain(imported, journal);
  EXPECT_EQ(refusal(imported), there);

  QuietEtcd led;
  led.store.execute(
      {.then = {etcd::put(kKeys.leader, to_text(LeaderRecord{.incarnation = "1-2"}))}});
  EXPECT_EQ(refusal(led), there);

  QuietEtcd left_over;
  left_over.store.execute({.then = {etcd::put(kKeys.base, to_text(BatchId{3, 0}))}});
  EXPECT_EQ(refusal(left_over), there);

  QuietEtcd full;
  full.store.full = true;
  EXPECT_EQ(refusal(full), "etcd: ");  // a real one has words for it

  QuietEtcd forbidden;
  forbidden.store.read_only = true;
  EXPECT_EQ(refusal(forbidden), "etcd: permission denied");
}

TEST(ChainCopy, AJournalThatIsNoneIsNotImported) {
  QuietEtcd etcd;
  EXPECT_EQ(error_of([&] { import_chain(etcd, {}); }), "/simulated: there is no journal");
  crash::Files damaged = journal_of("damaged");
  damaged.begin()->second[kSegmentHeaderSize + kFrameHeaderSize + 3] ^= 1;
  EXPECT_NE(error_of([&] { import_chain(etcd, damaged); }).find("the journal is damaged"),
            std::string::npos);
  EXPECT_EQ(etcd.store.find(kKeys.leader), nullptr);
}

TEST(ChainCopy, WhatIsNotThereOrCannotBeReadIsNotExported) {
  QuietEtcd etcd;
  EXPECT_EQ(error_of([&] { export_chain(etcd); }),
            "etcd has no chain of a cluster golden: there is no batch under /golden/");

  import_chain(etcd, journal_of("unreadable", 200));
  const BatchId second{
      static_cast<std::uint64_t>(parse_batch_id(etcd.store.find(kKeys.head)->value)->epoch), 1};
  const std::string key = kKeys.batch(second);
  std::string bytes = etcd.store.find(key)->value;
  bytes[3] = '7';
  etcd.store.execute({.then = {etcd::put(key, bytes)}});
  EXPECT_NE(error_of([&] {
              export_chain(etcd);
            }).find("cannot be read: batch " + to_text(second) + " is of version 7"),
            std::string::npos);
  bytes[3] = '1';
  bytes.back() ^= 1;
  etcd.store.execute({.then = {etcd::put(key, bytes)}});
  EXPECT_NE(error_of([&] {
              export_chain(etcd);
            }).find("cannot be read: batch " + to_text(second) + " is damaged"),
            std::string::npos);
  etcd.store.execute({.then = {etcd::erase(key)}});
  EXPECT_NE(error_of([&] {
              export_chain(etcd);
            }).find("cannot be read: batch " + to_text(BatchId{second.epoch, 2}) + " follows"),
            std::string::npos);
}

struct EtcdTime final : Clock {
  explicit EtcdTime(const etcd::ModelEtcd& model) : etcd(model) {}
  Time now() const noexcept override { return etcd.now(); }
  const etcd::ModelEtcd& etcd;
};

// Until the copy is done or has an error; how long that took.
template <typename Copy>
Duration finish(etcd::ModelEtcd& etcd, etcd::ModelEtcd::Connection& connection, Copy& copy) {
  const Time began = etcd.now();
  while (!copy.is_done() && copy.error().empty() && etcd.now() < began + 10min) {
    copy.turn();
    etcd.move_to(etcd.now() + 1ms);
    connection.deliver();
  }
  return etcd.now() - began;
}

TEST(ChainCopy, EtcdIsNotWaitedForForEver) {
  QuietEtcd etcd;
  etcd.fail_until(etcd.now() + 1h);
  const EtcdTime clock(etcd);
  const auto connection = etcd.connect();
  ChainExport reads(*connection, clock, {.cluster = "golden"});
  const Duration read = finish(etcd, *connection, reads);
  EXPECT_GE(read, 29s);
  EXPECT_LT(read, 60s);
  EXPECT_EQ(reads.error(),
            "etcd has not answered for 30 seconds; the last of it: etcd: no answer in time");

  const auto other = etcd.connect();
  crash::SimulatedDisk disk(journal_of("waits"));
  ChainImport writes(*other, clock, disk, {.cluster = "golden", .name = "1"});
  EXPECT_LT(finish(etcd, *other, writes), 60s);
  EXPECT_EQ(writes.error(), reads.error());
}

// A client to whom etcd says no.
struct Refused final : etcd::Client {
  void switch_member() override {}
  void execute(const etcd::Txn&, Duration, Done done) override { asked.push_back(std::move(done)); }
  void compact(etcd::Revision, Duration, Done) override {}
  void measure(Duration, Measured) override {}
  void watch(const std::string&, const std::string&, etcd::Revision, etcd::Watcher&) override {}
  void unwatch() override {}
  std::vector<Done> asked;
};

TEST(ChainCopy, WhoMayNotReadIsToldSoon) {
  Refused client;
  ManualClock clock;
  ChainExport chain(client, clock, {.cluster = "golden"});
  Duration waited{};
  for (; chain.error().empty() && waited < 10s; waited += 10ms) {
    chain.turn();
    for (const auto& done : std::exchange(client.asked, {})) {
      done({.status = etcd::Answer::Status::refused, .message = "permission denied"});
    }
    clock.advance(10ms);
  }
  EXPECT_EQ(chain.error(), "etcd: permission denied");
  EXPECT_LT(waited, 5s);
}

// A disk on which there is no room for all of it, and one that fails.
TEST(ChainCopy, WhatIsNotAllWrittenIsAnError) {
  QuietEtcd etcd;
  import_chain(etcd, journal_of("room", 200));
  const ManualClock clock;
  const auto connection = etcd.connect();
  ChainExport chain(*connection, clock, {.cluster = "golden"});
  finish(etcd, *connection, chain);
  crash::SimulatedDisk small;
  small.capacity = 4000;
  EXPECT_THROW(chain.write(small), JournalError);
  crash::SimulatedDisk failing;
  failing.fault = [](crash::SimulatedDisk::Operation operation, const std::string&) {
    return operation == crash::SimulatedDisk::Operation::write ? EIO : 0;
  };
  EXPECT_THROW(chain.write(failing), JournalError);
  crash::SimulatedDisk good;
  EXPECT_EQ(chain.write(good).holds, 211U);
  const Verdict verdict = verify(good);
  EXPECT_TRUE(verdict.sound) << verdict.problem;
  EXPECT_EQ(verdict.segments, 1U);
  EXPECT_EQ(verdict.torn_size, 0U);
}

TEST(ChainCopy, AFloorOfFencesIsCopiedToo) {
  constexpr Fence kFloor = 1'000'000;
  QuietEtcd etcd;
  const ManualClock clock;
  const auto connection = etcd.connect();
  crash::SimulatedDisk disk(journal_of("floor"));
  ChainImport chain(*connection, clock, disk,
                    {.cluster = "golden", .name = "1", .fence_floor = kFloor});
  finish(etcd, *connection, chain);
  EXPECT_EQ(chain.summary().largest_fence, kFloor);
  const auto node = leader_of(etcd);
  Batch batch(node->engine());
  EXPECT_GT(batch.acquire({.keys = "new", .holder = "n", .ttl = 60s}).grant.fence, kFloor);
  EXPECT_GE(largest_fence(held_in(export_chain(etcd))), kFloor);
}

// Two imports of different journals and a server, begun at moments of chance, on a network that
// loses, delays and repeats; an import may be killed. Whoever says that it is done is what is
// there.
class Race {
 public:
  explicit Race(std::uint64_t seed) : chance_(seed, 1, 2), etcd_(seed, etcd::ModelFaults{}) {
    etcd_.move_to(kBegan);
    for (Import& import : imports_) {
      import.begins = etcd_.now() + chance_.below(Duration(400ms));
      import.dies =
          chance_.percent(40) ? import.begins + chance_.below(Duration(300ms)) : Time::never();
    }
    if (chance_.percent(50)) server_begins_ = etcd_.now() + chance_.below(Duration(600ms));
  }

  void run(const std::vector<crash::Files>& journals) {
    for (const Time end = etcd_.now() + 90s; etcd_.now() < end;) {
      etcd_.move_to(etcd_.now() + 1ms);
      bool busy = false;
      for (std::size_t i = 0; i < imports_.size(); ++i) busy |= step(imports_[i], journals[i]);
      step_server();
      if (!busy && etcd_.now() > kBegan + 2s) break;
    }
    server_.reset();
  }

  void judge(const std::vector<std::string>& expected, int* wins) {
    const std::string held = names_of(leader_of(etcd_)->holds());
    int done = 0;
    for (std::size_t i = 0; i < imports_.size(); ++i) {
      const Import& import = imports_[i];
      EXPECT_TRUE(import.is_done || !import.error.empty() || import.is_dead);
      const bool is_there = held == expected[i];
      if (import.is_done) {
        EXPECT_TRUE(is_there) << held;
        ++done;
      } else if (!import.error.empty()) {
        const bool unknown = import.error.find("not known") != std::string::npos;
        EXPECT_TRUE(!is_there || unknown) << import.error;
      }
    }
    EXPECT_LE(done, 1);
    *wins += done;
    const bool is_known = held.empty() || held == expected[0] || held == expected[1];
    EXPECT_TRUE(is_known) << held;
  }

 private:
  struct Import {
    Time begins{};
    Time dies{};
    std::unique_ptr<crash::SimulatedDisk> disk{};
    std::unique_ptr<etcd::ModelEtcd::Connection> connection{};
    std::unique_ptr<ChainImport> chain{};
    bool is_done = false;
    bool is_dead = false;
    std::string error{};
  };

  // Whether it has more to do.
  bool step(Import& import, const crash::Files& journal) {
    if (import.is_done || import.is_dead || !import.error.empty()) return false;
    if (etcd_.now() < import.begins) return true;
    if (import.chain == nullptr) {
      import.disk = std::make_unique<crash::SimulatedDisk>(journal);
      import.connection = etcd_.connect();
      import.chain = std::make_unique<ChainImport>(
          *import.connection, clock_, *import.disk,
          ChainCopyOptions{.cluster = "golden",
                           .name = std::to_string(&import - imports_.data()),
                           .batch_max = 2048});
    }
    if (etcd_.now() >= import.dies) {
      import.is_dead = true;
      import.chain.reset();
      import.connection.reset();
      return false;
    }
    import.connection->deliver();
    import.chain->turn();
    import.is_done = import.chain->is_done();
    import.error = import.chain->error();
    return true;
  }

  void step_server() {
    if (etcd_.now() < server_begins_) return;
    if (server_ == nullptr || !server_->over().empty()) {
      server_ = std::make_unique<Node>(etcd_, "racer-" + std::to_string(++lives_));
    }
    server_->step();
  }

  Chance chance_;
  etcd::ModelEtcd etcd_;
  const EtcdTime clock_{etcd_};
  std::vector<Import> imports_{2};
  Time server_begins_ = Time::never();
  std::unique_ptr<Node> server_;
  int lives_ = 0;
};

TEST(ChainCopy, OfSeveralWhoBeginAClusterOneDoes) {
  const std::vector<crash::Files> journals = {journal_of("one", 120), journal_of("two", 60)};
  const std::vector<std::string> expected = {names_of(held_in(journals[0])),
                                             names_of(held_in(journals[1]))};
  const std::uint64_t seeds = 10'000 / test_divisor(10, 10);
  int wins = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Race race(seed);
    race.run(journals);
    race.judge(expected, &wins);
  }
  EXPECT_GT(wins, static_cast<int>(seeds) / 4);
}

}  // namespace
}  // namespace lockd::golden
