// What is asked of etcd, and the interface for it: GrpcEtcd over the network, and ModelEtcd in a
// simulation.
//
// Three calls suffice. A transaction reads and writes any keys, guarded by what they are; a watch
// tells of every change, in order, from a revision on; a compaction forgets old revisions. A
// fourth, for people, measures the store.
//
// A client belongs to one thread. Nothing is called back from within a call, but later, on that
// thread, when whoever drives the client lets it; and no more once the client is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "lockd/types.h"

namespace lockd::etcd {

// Every change of the whole store has the next one. From 1 on; a key that is not there was modified
// at 0.
using Revision = std::int64_t;

// Which etcd it is. One that was emptied and has the members that it had may have the same.
using StoreId = std::uint64_t;

// Why nothing goes on where etcd knows less than it knew, or is not the one that it was.
inline constexpr char kAnotherStore[] = "etcd is another one, or was restored from an older backup";

struct Entry {
  std::string key;
  std::string value{};
  Revision modified = 0;
};

// That a key was modified at a revision, or that it has a value.
struct Compare {
  std::string key;
  std::variant<Revision, std::string> is;
};

struct Operation {
  enum class Type : std::uint8_t { put, get, erase };

  Type type = Type::get;
  std::string key{};
  std::string range_end{};  // of get and erase: all keys before it; empty: the one key
  std::string value{};      // of put
  // Of get.
  std::int64_t limit = 0;  // 0: none
  Revision revision = 0;   // 0: the newest
  bool keys_only = false;
};

// Of a transaction that writes no key is written twice: etcd refuses that.
struct Txn {
  std::vector<Compare> compare{};
  std::vector<Operation> then{};       // if all hold
  std::vector<Operation> otherwise{};  // if not
};

struct Answer {
  enum class Status : std::uint8_t {
    done,
    unknown,    // no answer in time: it has happened, or will, or never does
    compacted,  // the revision that it asks for is not there: it is gone, or was of another store
    no_space,   // nothing was done: the store is full
    refused,    // nothing was done, nor will be: `message` says why
  };

  Status status = Status::unknown;
  bool succeeded = false;                   // the comparisons held
  Revision revision = 0;                    // of the store; that of a later call is none before it
  StoreId store = 0;                        // which one it is
  std::vector<std::vector<Entry>> found{};  // for each get, in order
  std::string message{};
};

// In bytes; 0 where etcd does not say.
struct StoreSize {
  std::uint64_t taken = 0;
  std::uint64_t needed = 0;
  std::uint64_t quota = 0;
};

struct Change {
  Entry entry;  // of an erased key, `modified` is when it was erased
  bool erased = false;
};

// Hears what a watch tells.
class Watcher {
 public:
  // In the order of their revisions; those of one revision possibly in several calls, and some of
  // them again after a watch was opened anew.
  virtual void changed(const std::vector<Change>& changes) = 0;
  // Nothing more comes. `compacted`: what it should have told next is gone.
  virtual void ended(bool compacted, const std::string& why) = 0;

 protected:
  ~Watcher() = default;
};

class Client {
 public:
  using Done = std::function<void(const Answer&)>;
  using Measured = std::function<void(const StoreSize&)>;

  virtual ~Client() = default;

  // The member that is asked at present has been silent for too long: from now on another is.
  virtual void ask_another() = 0;

  // `done` is called once, not much later than `within` from now.
  virtual void execute(const Txn& txn, Duration within, Done done) = 0;
  virtual void compact(Revision revision, Duration within, Done done) = 0;
  // Of one member, as they are much alike. `measured` is not called if there is no answer.
  virtual void measure(Duration within, Measured measured) = 0;

  // Tells `watcher` of every change from `from` on of the keys from `key` up to `range_end`. One
  // watch at a time: this ends the one before, unheard.
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
