// etcd's store in small, for tests: keys, revisions, transactions, compaction. One call after the
// other, so it is linearizable by construction.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replication/etcd_client.h"

namespace lockd::etcd {

class ModelStore {
 public:
  Answer execute(const Txn& txn);
  Answer compact(Revision revision);

  Revision revision() const { return revision_; }
  Revision compacted() const { return compacted_; }
  // The newest of a key; null if it is not there.
  const Entry* find(const std::string& key) const;
  std::size_t size() const { return keys_.size(); }

  // The next changes in a range from revision `from` on, about `changes_max`, and all of the last
  // one's revision. Moves `from` on. False if some of them are gone.
  bool changes(const std::string& key, const std::string& range_end, Revision* from,
               std::size_t changes_max, std::vector<Change>* changes) const;

  StoreId id = 1;
  bool full = false;                // puts are refused
  bool read_only = false;           // writes are rejected for lack of a right
  std::size_t value_max = 1 << 20;  // larger ones are refused
  bool refuses_compaction = false;  // over a connection
  std::uint64_t quota = 0;          // in keys; returned by measure()
  // Called with each change.
  std::function<void(const Change&)> on_change = [](const Change&) {};

 private:
  struct Version {
    Entry entry;
    bool erased = false;
  };
  using Versions = std::vector<Version>;

  bool holds(const Compare& compare) const;
  bool check(const std::vector<Operation>& operations, Answer* answer) const;
  std::vector<Entry> read(const Operation& get) const;
  void write(const std::string& key, const std::string& value, bool erased);
  void erase(const Operation& operation);

  Revision revision_ = 1;
  Revision compacted_ = 0;
  std::map<std::string, Versions> keys_;
  std::deque<Change> log_;
};

}  // namespace lockd::etcd
