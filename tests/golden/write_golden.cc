// write_golden DIRECTORY: writes a journal, a stopped journal and a chain as this version writes
// them, and what they hold, into a new directory. For a release: see CONTRIBUTING.md.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "crash/process.h"
#include "golden/golden.h"
#include "lockd/batch.h"

namespace lockd::golden {
namespace {

using namespace std::chrono_literals;

struct Deaf final : Listener {
  void on_wait_done(const WaitResult&) noexcept override {}
};

// What clients do, the same on a journal of its own and in a cluster. `pass` makes durable what
// they have committed, and lets some time go by.
class Script {
 public:
  using Pass = std::function<void(Duration)>;

  Script(Engine& engine, Pass pass) : batch_(engine), pass_(std::move(pass)) {}

  // Everything that a record can say.
  void first() {
    take_locks();
    take_slots();
    take_odd_names();
    pass(2s);  // the forge's lease is over, and so is a wait
    take("forge", "cart-2", 600s);
    pass(10ms);
    for (int i = 0; i < 8; ++i) {
      renew("stone-42", "cart-7", 1, 45s);
      pass(10ms);
    }
  }

  // A little more, behind what was recovered.
  void second() {
    take("stone-50", "cart-3", 600s);
    batch_.acquire({.keys = "stone-51", .holder = {&alice_, 0xa5}, .ttl = 90s});
    pass(1s);
  }

  void third() {
    take("stone-52", "cart-4", 60s);
    batch_.commit();
  }

 private:
  void pass(Duration time) {
    batch_.commit();
    pass_(time);
  }

  Fence take(std::string_view key, Holder holder, Duration ttl) {
    return batch_.acquire({.keys = key, .holder = holder, .ttl = ttl}).grant.fence;
  }
  Fence take_slot(Holder holder, Duration wait = {}) {
    return batch_
        .acquire({.keys = semaphore("belt", 3), .holder = holder, .ttl = 300s, .wait = wait},
                 &listener_, ++waits_)
        .grant.fence;
  }
  void wait_for(std::string_view key, Holder holder, Duration wait) {
    batch_.acquire({.keys = key, .holder = holder, .ttl = 120s, .wait = wait}, &listener_,
                   ++waits_);
  }
  void renew(std::string_view key, Holder holder, Fence fence, Duration ttl) {
    batch_.renew({key, holder, fence}, ttl);
  }

  void take_locks() {
    take("stone-42", "cart-7", 30s);
    const Fence first = take("stone-43", {&alice_, 0xa1}, 600s);
    wait_for("stone-43", {&bob_, 0xb1}, 60s);
    pass(10ms);
    batch_.release({"stone-43", {&alice_, 0xa1}, first});  // to bob
    take("stone-44", {&carol_, 0xc1}, 600s);
    pass(10ms);
    batch_.end_session(carol_);
    take("stone-45", {&dave_, 0xd1}, 600s);
    batch_.end_session(dave_, /*keep_holds=*/true);
    take("forge", "cart-1", 1s);
    wait_for("stone-42", "cart-8", 1s);  // until it has had enough
    wait_for("stone-42", "cart-9", 1h);  // for ever, as the process ends before
    pass(10ms);
  }

  void take_slots() {
    take_slot("cart-7");
    take_slot({&bob_, 0xb2});
    const Fence third = take_slot("cart-9");
    take_slot("cart-10", 60s);
    pass(10ms);
    batch_.release({KeyItem("belt", Kind::semaphore), "cart-9", third});  // to cart-10
    batch_.acquire({.keys = semaphore("stone-42", kLimitMax),
                    .holder = "a semaphore of the same name",
                    .ttl = 300s});
    pass(10ms);
  }

  void take_odd_names() {
    take("for ever", "cart-7", kDurationMax);
    take("Übergabe/7 ⛏", "Löwe", 300s);
    take(std::string(kKeySizeMax, 'k'), std::string(kHolderSizeMax, 'h'), 300s);
    pass(10ms);
  }

  Deaf listener_;
  Session alice_{.id = 1};
  Session bob_{.id = 2};
  Session carol_{.id = 3};
  Session dave_{.id = 4};
  std::uint64_t waits_ = 0;
  Batch batch_;
  const Pass pass_;
};

// A run on `disk`, which ends as if it were killed.
void run(crash::SimulatedDisk& disk, Duration sync_interval,
         const std::function<void(crash::Process&, Script&)>& use) {
  crash::Process process(disk, {.sync_interval = sync_interval});
  Script script(process.engine, [&](Duration time) {
    while (process.log.turn() == Duration::zero()) {
    }
    disk.advance(time);
    process.engine.sweep();
    process.log.turn();
  });
  use(process, script);
}

crash::Files files_of(const crash::SimulatedDisk& disk) {
  return *disk.after_power_failure(crash::Survival::way(0));
}

crash::Files write_journal() {
  crash::SimulatedDisk disk;
  run(disk, {}, [](crash::Process&, Script& script) { script.first(); });
  run(disk, {}, [](crash::Process&, Script& script) { script.second(); });
  // Killed in the midst of its first snapshot.
  run(disk, {}, [](crash::Process& process, Script& script) {
    script.third();
    process.log.turn();
  });
  crash::Files files = files_of(disk);
  std::string& last = files.rbegin()->second;
  last.replace(last.find_last_not_of('\0') + 1, 20, last.substr(kSegmentHeaderSize, 20));
  return files;
}

crash::Files write_stopped_journal() {
  crash::SimulatedDisk disk;
  run(disk, 50ms, [](crash::Process& process, Script& script) {
    script.first();
    process.log.close();
  });
  return files_of(disk);
}

std::string write_chain() {
  etcd::ModelEtcd etcd(1, etcd::kNoFaults);
  etcd.move_to(Time{1'000'000'000});
  std::string lines;
  etcd.store.on_change = [&](const etcd::Change& change) { lines += line_of(change); };
  const auto lead = [&](const std::string& name, const auto& use) {
    Node node(etcd, name);
    node.take_over();
    Script script(node.engine(), [&](Duration time) {
      node.pass(time);
      node.engine().sweep();
    });
    use(node, script);
  };
  lead("n1", [](Node& node, Script& script) {
    script.first();
    node.resign();
  });
  lead("n2", [](Node&, Script& script) { script.second(); });
  return lines;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void write_files(const std::string& directory, const crash::Files& files) {
  std::filesystem::create_directories(directory);
  for (const auto& [name, bytes] : files) write_text(directory + "/" + name, bytes);
}

void write_all(const std::string& directory) {
  const auto write = [&](const std::string& name, const crash::Files& files) {
    write_files(directory + "/" + name, files);
    write_text(directory + "/" + name + ".holds.txt", recover(files));
  };
  write("journal", write_journal());
  write("journal-stopped", write_stopped_journal());
  const std::string chain = write_chain();
  write_text(directory + "/chain.txt", chain);
  write_text(directory + "/chain.holds.txt", take_over(chain));
}

}  // namespace
}  // namespace lockd::golden

int main(int argc, char** argv) {
  if (argc != 2 || std::filesystem::exists(argv[1])) {
    std::cerr << "usage: write_golden DIRECTORY, which must not be there\n";
    return 2;
  }
  lockd::golden::write_all(argv[1]);
  return 0;
}
