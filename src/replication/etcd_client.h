// The interface to etcd. GrpcEtcd implements it over the network, ModelEtcd in simulations.
//
// A client belongs to one thread. Callbacks run later on that thread, when its event loop runs
// them, never inside of a call, and never after the client was destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "lockd/types.h"

namespace lockd::etcd {

// Every change of the store increments it, beginning with 1. A missing key was modified at 0.
using Revision = std::int64_t;

// Identifies an etcd cluster. One that was emptied and has the same members may keep its id.
using StoreId = std::uint64_t;

// The error when etcd has lost revisions that it had, or is another etcd.
inline constexpr char kAnotherStore[] = "etcd is another one, or was restored from an older backup";

struct Entry {
  std::string key;
  std::string value{};
  Revision modified = 0;
};

// Holds if the key was modified at the revision, or has the value.
struct Compare {
  std::string key;
  std::variant<Revision, std::string> is;
};

struct Operation {
  enum class Type : std::uint8_t { put, get, erase };

  Type type = Type::get;
  std::string key{};
  std::string range_end{};  // for get and erase: the end of the range; empty: `key` alone
  std::string value{};      // for put
  // The rest is for get.
  std::int64_t limit = 0;  // 0: none
  Revision revision = 0;   // 0: the newest
  bool keys_only = false;
};

// No transaction writes a key twice: etcd rejects that.
struct Txn {
  std::vector<Compare> compare{};
  std::vector<Operation> then{};       // if all hold
  std::vector<Operation> otherwise{};  // if not
};

struct Answer {
  enum class Status : std::uint8_t {
    done,
    unknown,    // no answer in time: it was done, will be done, or never is
    compacted,  // the requested revision does not exist, or does not exist any more
    no_space,   // nothing was done: the store is full
    refused,    // nothing was done: `message` says why
  };

  Status status = Status::unknown;
  bool succeeded = false;  // the comparisons held
  Revision revision = 0;   // of the store; never decreases
  StoreId store = 0;
  std::vector<std::vector<Entry>> found{};  // for each get, in order
  std::string message{};
};

// In bytes; 0 if etcd does not report it.
struct StoreSize {
  std::uint64_t taken = 0;
  std::uint64_t needed = 0;
  std::uint64_t quota = 0;
};

struct Change {
  Entry entry;  // for an erased key, `modified` is the revision of the erasure
  bool erased = false;
};

// Receives the changes of a watch.
class Watcher {
 public:
  // In the order of revisions. The changes of one revision may come in several calls, and some are
  // repeated after the watch was reopened.
  virtual void changed(const std::vector<Change>& changes) = 0;
  // The watch has ended. `compacted`: the next changes do not exist any more.
  virtual void ended(bool compacted, const std::string& why) = 0;

 protected:
  ~Watcher() = default;
};

class Client {
 public:
  using Done = std::function<void(const Answer&)>;
  using Measured = std::function<void(const StoreSize&)>;

  virtual ~Client() = default;

  // Sends further calls to another member, because the current one was silent for too long.
  virtual void switch_member() = 0;

  // `done` is called once, not much later than `within` from now.
  virtual void execute(const Txn& txn, Duration within, Done done) = 0;
  virtual void compact(Revision revision, Duration within, Done done) = 0;
  // Measures one member; they differ little. `measured` is not called without an answer.
  virtual void measure(Duration within, Measured measured) = 0;

  // Delivers every change of the keys in [key, range_end) from revision `from` on. Replaces the
  // previous watch without calling its ended().
  virtual void watch(const std::string& key, const std::string& range_end, Revision from,
                     Watcher& watcher) = 0;
  virtual void unwatch() = 0;
};

inline Operation put(std::string key, std::string value) {
  return {.type = Operation::Type::put, .key = std::move(key), .value = std::move(value)};
}
inline Operation get(std::string key) { return {.key = std::move(key)}; }
inline Operation erase(std::string key, std::string range_end = {}) {
  return {.type = Operation::Type::erase, .key = std::move(key), .range_end = std::move(range_end)};
}

}  // namespace lockd::etcd
