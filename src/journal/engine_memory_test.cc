// Memory that runs out anywhere in an engine with a journal: what was acknowledged is there at the
// next start, and what an engine that goes on shows is what the next start finds.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/testing/scarce_memory.h"
#include "journal/log_journal.h"
#include "journal/posix_storage.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 4> kKeys = {"first", "second", "third", "fourth"};
constexpr std::string_view kAna = "ana, whose name is allocated";
constexpr std::string_view kBob = "bob, whose name is allocated";

// What a child leaves to its parent. Fences: of the grant in force, 0 when there is none.
struct Ledger {
  struct Entry {
    bool is_known = false;
    Fence fence = 0;
  };
  std::array<Entry, kKeys.size()> acknowledged{};
  std::array<Entry, kKeys.size()> shown_last{};  // when it went on to the end
};

// An engine on a journal that is written to and not synced: it is the process that ends.
struct DurableEngine {
  explicit DurableEngine(const std::string& directory)
      : storage(directory, PosixStorage::Access::write),
        journal(storage, {.sync_interval = 1h}),
        clock(journal.offset_ns()),
        engine({.shards = 1, .clock = &clock, .journal = &journal, .sweeper = false}) {}

  // In the product this is a thread of its own: what it throws ends the process.
  void turn() noexcept { journal.turn(); }

  PosixStorage storage;
  LogJournal journal;
  SystemClock clock;
  Engine engine;
};

class EngineStory final : private Listener {
 public:
  EngineStory(const std::string& directory, Ledger& ledger)
      : Listener(Delivery::at_commit), durable_(directory), ledger_(ledger) {}

  bool run() {
    const Fence first = acquire(0, kAna);
    acquire(0, kBob, 60s);
    acquire(1, kAna);
    enqueue(1);
    enqueue(2);
    acquire(3, Holder::of_secret(9, 3));
    release(0, kAna, first);
    step(2, [&](Batch& batch) {
      batch.end_session(session_);
      return Fence{0};
    });
    look();
    {
      const ScarceMemory scarce;
      durable_.turn();
    }
    return show_last();
  }

 private:
  void on_wait_done(const WaitResult&) noexcept override {}

  // What becomes of a key is in doubt until the journal has it. `operation` returns the fence in
  // force after it, or none when it changes nothing there.
  template <typename Operation>
  void step(std::size_t key, Operation operation) {
    const Ledger::Entry before = std::exchange(ledger_.acknowledged[key], {});
    try {
      const ScarceMemory scarce;
      Batch batch(durable_.engine);
      const std::optional<Fence> fence = operation(batch);
      const Position position = batch.commit();
      durable_.turn();
      if (!durable_.engine.is_durable(position)) return;
      ledger_.acknowledged[key] = fence ? Ledger::Entry{true, *fence} : before;
    } catch (const std::exception&) {  // an embedder may go on
    }
  }

  static std::optional<Fence> fence_of(const Answer& answer) {
    return answer.outcome == Outcome::ok ? std::optional(answer.grant.fence) : std::nullopt;
  }
  Fence acquire(std::size_t key, const Holder& holder, Duration wait = 0s) {
    Answer answer;
    step(key, [&](Batch& batch) {
      answer = batch.acquire({kKeys[key], holder, 600s, wait}, this);
      return fence_of(answer);
    });
    return answer.grant.fence;
  }
  void enqueue(std::size_t key) {
    step(key, [&](Batch& batch) {
      return fence_of(batch.enqueue({kKeys[key], {&session_, 1}, 600s}));
    });
  }
  // To who waits, if anybody does: under which fence is not said here.
  void release(std::size_t key, const Holder& holder, Fence fence) {
    step(key, [&](Batch& batch) {
      batch.release({kKeys[key], holder, fence});
      return std::optional<Fence>();
    });
    ledger_.acknowledged[key] = {};
  }
  void look() {
    try {
      const ScarceMemory scarce;
      Batch batch(durable_.engine);
      for (const std::string_view key : kKeys) {
        batch.fence(key);
        batch.status(Kind::lock, key);
      }
      durable_.engine.list([](const KeyStatus&) {});
    } catch (const std::exception&) {  // what only looks may throw
    }
  }

  bool show_last() {
    for (std::size_t key = 0; key < kKeys.size(); ++key) {
      const FenceStatus status = durable_.engine.fence(kKeys[key]).status;
      ledger_.shown_last[key] = {true, status.held ? status.fence : 0};
    }
    return durable_.engine.check().empty();
  }

  DurableEngine durable_;
  Ledger& ledger_;
  Session session_{.id = 2};
};

class EngineMemoryTest : public ::testing::Test {
 protected:
  EngineMemoryTest()
      : ledger_(*static_cast<Ledger*>(::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~EngineMemoryTest() override { ::munmap(&ledger_, sizeof(Ledger)); }

  bool tell_story() const {
    ledger_ = {};
    return EngineStory(directory_, ledger_).run();
  }

  void expect_what_was_told() const {
    {
      DurableEngine recovered(directory_);
      EXPECT_EQ(recovered.engine.check(), "");
      for (std::size_t key = 0; key < kKeys.size(); ++key) {
        const FenceStatus status = recovered.engine.fence(kKeys[key]).status;
        const Fence fence = status.held ? status.fence : 0;
        for (const auto& told : {ledger_.acknowledged[key], ledger_.shown_last[key]}) {
          if (told.is_known) {
            EXPECT_EQ(fence, told.fence) << kKeys[key];
          }
        }
      }
    }
    std::filesystem::remove_all(directory_);
  }

  Ledger& ledger_;
  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path() + "/journal";
};

TEST_F(EngineMemoryTest, WhatWasAcknowledgedIsThereAtTheNextStart) {
  const std::uint64_t ended =
      fail_each_allocation([this] { return tell_story(); }, [this] { expect_what_was_told(); });
  EXPECT_GT(ended, 20u);
}

}  // namespace
}  // namespace lockd
