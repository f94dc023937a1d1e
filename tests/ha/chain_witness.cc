#include "ha/chain_witness.h"

#include "crash/violation.h"
#include "journal/format.h"
#include "replication/records.h"

namespace lockd::ha_test {

using crash::violated;

void ChainWitness::see(const etcd::Change& change) {
  const etcd::Entry& entry = change.entry;
  if (entry.key == keys_.leader) {
    leader_ = change.erased ? 0 : entry.modified;
    leaders_ += leader_ != 0;
  } else if (entry.key == keys_.base) {
    const BatchId base = parse_batch_id(entry.value).value_or(BatchId{});
    if (base < base_) violated("truth-is-kept", "the base is moved back to " + entry.value);
    base_ = base;
  } else if (entry.key == keys_.head) {
    if (entry.value != to_text(head_)) violated("one-chain", "the head is put to " + entry.value);
  } else if (const auto id = keys_.batch_id_of(entry.key)) {
    see_batch(*id, change);
  }
}

void ChainWitness::see_batch(const BatchId& id, const etcd::Change& change) {
  const std::string at = "batch " + to_text(id);
  if (change.erased) {
    if (id >= base_) violated("truth-is-kept", at + " is erased; the base is " + to_text(base_));
    return;
  }
  if (static_cast<etcd::Revision>(id.epoch) != leader_) {
    violated("deposed-is-final", at + " is put in the epoch " + std::to_string(leader_));
  }
  BatchHeader header;
  std::string_view payload;
  if (!open(change.entry.value, &header, &payload)) violated("one-chain", at + " is damaged");
  if (header.previous != head_ || header.position != position_ || id <= head_) {
    violated("one-chain", at + " names " + to_text(header.previous) + " as its predecessor; the " +
                              "last one is " + to_text(head_));
  }
  head_ = id;
  position_ = end_of(header, payload.size());
  ends_[leader_] = position_;
  ++batches_;
  Event event{};
  for (; !payload.empty(); ++events_) {
    if (!take_event(payload, &event)) violated("one-chain", at + " has a record without sense");
    holds_.apply(event);
    if (event.type == Event::Type::ended && event.cause == EndCause::expired) on_expired_(event);
  }
}

Position ChainWitness::end_of_epoch(etcd::Revision epoch) const {
  const auto found = ends_.find(epoch);
  return found == ends_.end() ? 0 : found->second;
}

std::string difference(const crash::Holds& mine, const crash::Holds& expected) {
  for (const auto& [key, held] : expected.all()) {
    const crash::Held* const found = mine.find(key);
    if (found == nullptr) return show(key) + " is missing";
    if (found->owner != held.owner || found->limit != held.limit || found->ttl != held.ttl) {
      return show(key) + " is of " + found->owner + " for " + std::to_string(found->ttl.count()) +
             " ns, not of " + held.owner + " for " + std::to_string(held.ttl.count());
    }
  }
  for (const auto& [key, held] : mine.all()) {
    if (expected.find(key) == nullptr) return show(key) + " should not be there";
  }
  return {};
}

}  // namespace lockd::ha_test
