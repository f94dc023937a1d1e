#include "replication/testing/model_store.h"

#include <algorithm>
#include <utility>

namespace lockd::etcd {

const Entry* ModelStore::find(const std::string& key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.back().erased) return nullptr;
  return &found->second.back().entry;
}

Answer ModelStore::execute(const Txn& txn) {
  Answer answer{.status = Answer::Status::done, .revision = revision_, .store = id};
  answer.succeeded = std::all_of(txn.compare.begin(), txn.compare.end(),
                                 [&](const Compare& compare) { return holds(compare); });
  const std::vector<Operation>& operations = answer.succeeded ? txn.then : txn.otherwise;
  if (!check(operations, &answer)) return answer;
  const Revision before = revision_;
  bool writes = false;
  for (const Operation& operation : operations) {
    if (operation.type == Operation::Type::get) {
      answer.found.push_back(read(operation));
      continue;
    }
    if (!std::exchange(writes, true)) ++revision_;
    if (operation.type == Operation::Type::put) write(operation.key, operation.value, false);
    if (operation.type == Operation::Type::erase) erase(operation);
  }
  const bool changed = !log_.empty() && log_.back().entry.modified == revision_;
  if (writes && !changed) revision_ = before;  // nothing was there to be erased
  answer.revision = revision_;
  return answer;
}

bool ModelStore::holds(const Compare& compare) const {
  const Entry* const entry = find(compare.key);
  if (const auto* revision = std::get_if<Revision>(&compare.is)) {
    return (entry == nullptr ? 0 : entry->modified) == *revision;
  }
  return entry != nullptr && entry->value == std::get<std::string>(compare.is);
}

bool ModelStore::check(const std::vector<Operation>& operations, Answer* answer) const {
  for (const Operation& operation : operations) {
    if (full && operation.type == Operation::Type::put) answer->status = Answer::Status::no_space;
    if (read_only && operation.type != Operation::Type::get) {
      answer->status = Answer::Status::refused;
      answer->message = "permission denied";
    }
    if (operation.value.size() > value_max) {
      answer->status = Answer::Status::refused;
      answer->message = "request is too large";
    }
    const bool is_future = operation.revision > revision_;
    if (is_future || (operation.revision != 0 && operation.revision < compacted_)) {
      answer->status = Answer::Status::compacted;
    }
  }
  return answer->status == Answer::Status::done;
}

std::vector<Entry> ModelStore::read(const Operation& get) const {
  std::vector<Entry> found;
  const Revision at = get.revision == 0 ? revision_ : get.revision;
  for (auto key = keys_.lower_bound(get.key); key != keys_.end(); ++key) {
    if (get.range_end.empty() ? key->first != get.key : key->first >= get.range_end) break;
    const Versions& versions = key->second;
    const auto newer = std::find_if(versions.begin(), versions.end(),
                                    [&](const Version& v) { return v.entry.modified > at; });
    if (newer == versions.begin() || std::prev(newer)->erased) continue;
    found.push_back(std::prev(newer)->entry);
    if (get.keys_only) found.back().value.clear();
    if (get.limit != 0 && std::cmp_equal(found.size(), get.limit)) break;
  }
  return found;
}

void ModelStore::write(const std::string& key, const std::string& value, bool erased) {
  const Entry entry{key, value, revision_};
  keys_[key].push_back({entry, erased});
  log_.push_back({entry, erased});
  on_change(log_.back());
}

void ModelStore::erase(const Operation& operation) {
  for (auto key = keys_.lower_bound(operation.key); key != keys_.end(); ++key) {
    const bool outside = operation.range_end.empty() ? key->first != operation.key
                                                     : key->first >= operation.range_end;
    if (outside) break;
    if (!key->second.back().erased) write(key->first, {}, true);
  }
}

Answer ModelStore::compact(Revision revision) {
  Answer answer{.status = Answer::Status::compacted, .revision = revision_};
  if (revision <= compacted_ || revision > revision_) return answer;
  compacted_ = revision;
  while (!log_.empty() && log_.front().entry.modified <= revision) log_.pop_front();
  for (auto key = keys_.begin(); key != keys_.end();) {
    Versions& versions = key->second;
    const auto newer = std::find_if(versions.begin(), versions.end(),
                                    [&](const Version& v) { return v.entry.modified > revision; });
    if (newer != versions.begin()) {
      const auto kept = std::prev(newer);
      versions.erase(versions.begin(), kept->erased ? newer : kept);
    }
    key = versions.empty() ? keys_.erase(key) : std::next(key);
  }
  answer.status = Answer::Status::done;
  return answer;
}

bool ModelStore::changes(const std::string& key, const std::string& range_end, Revision* from,
                         std::size_t changes_max, std::vector<Change>* changes) const {
  if (*from <= compacted_) return false;
  auto change = std::lower_bound(
      log_.begin(), log_.end(), *from,
      [](const Change& c, Revision revision) { return c.entry.modified < revision; });
  Revision last = 0;
  for (; change != log_.end(); ++change) {
    const bool more = changes->size() < changes_max || change->entry.modified == last;
    if (!more) break;
    last = change->entry.modified;
    *from = last + 1;
    if (change->entry.key >= key && change->entry.key < range_end) changes->push_back(*change);
  }
  return true;
}

}  // namespace lockd::etcd
