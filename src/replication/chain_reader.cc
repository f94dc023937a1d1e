#include "replication/chain_reader.h"

#include <algorithm>
#include <utility>

#include "journal/format.h"

namespace lockd {
namespace {

std::string newer_than_known(std::uint32_t version) {
  return " is of version " + std::to_string(version) + ", and this program knows version " +
         std::to_string(kChainVersion) +
         "; run on every node the version of the leader, or a newer one";
}

std::optional<BatchId> batch_id_in(const std::vector<etcd::Entry>& found) {
  return found.empty() ? BatchId{} : parse_batch_id(found.front().value);
}

}  // namespace

void ChainReader::begin(const etcd::Answer& answer, std::size_t head, std::size_t base) {
  chain_.store = answer.store;
  chain_.revision = answer.revision;
  const std::optional<BatchId> head_id = batch_id_in(answer.found[head]);
  const std::optional<BatchId> base_id = batch_id_in(answer.found[base]);
  if (!head_id.has_value() || !base_id.has_value()) {
    return fail_unreadable("the head or the base is no place", {});
  }
  for (const etcd::Entry& entry : answer.found[base]) chain_.base_revision = entry.modified;
  chain_.head = *head_id;
  chain_.base = *base_id;
}

// All pages were read at one revision, so a missing batch is missing for every reader.
void ChainReader::finish_loading() {
  loading_ = false;
  if (chain_.last_batch == chain_.head) return unexpected_.reset();
  const UnexpectedBatch end{.missing = chain_.head,
                            .why = "the head is " + to_text(chain_.head) +
                                   ", and the last batch is " + to_text(chain_.last_batch)};
  const UnexpectedBatch first = unexpected_.value_or(end);
  fail_unreadable(first.why, first.missing);
}

void ChainReader::resolve(bool is_part) {
  const UnexpectedBatch batch = *std::exchange(unexpected_, {});
  if (is_part) batch.unreadable ? fail_unreadable(batch.why, batch.missing) : fail(batch.why);
}

void ChainReader::apply(const etcd::Change& change, const Apply& apply) {
  const EtcdKeys& keys = context_.keys;
  advance(change.entry.modified);
  const bool is_repeated = change.entry.modified < chain_.leader_changed;
  if (change.entry.key == keys.leader) {
    if (!is_repeated) apply_leader(change);
  } else if (change.entry.key == keys.successor) {
    // Put just before the leader's key is erased, and erased when that is put.
    if (!is_repeated) chain_.successor = change.erased ? "" : successor_in(change.entry.value);
  } else if (const auto id = keys.batch_id_of(change.entry.key); id && !change.erased) {
    apply_batch(*id, change.entry, apply);
  }
}

void ChainReader::apply_leader(const etcd::Change& change) {
  chain_.leader_changed = change.entry.modified;
  if (change.erased) {
    chain_.leader = {};
    return;
  }
  const std::uint32_t version = version_of_record(change.entry.value);
  if (version > kChainVersion) {
    return fail_unreadable("the leader's record" + newer_than_known(version), {});
  }
  auto record = leader_record_in(change.entry.value);
  if (!record.has_value()) {
    return fail_unreadable("the leader's key says '" + change.entry.value + "'", {});
  }
  chain_.leader = {change.entry.modified, std::move(*record)};
  chain_.leader_text = change.entry.value;
  chain_.successor.clear();
}

void ChainReader::apply_batch(const BatchId& id, const etcd::Entry& entry, const Apply& apply) {
  if (id <= chain_.last_batch) return context_.stats.batches_repeated.add();
  BatchHeader header;
  std::string_view payload;
  const bool is_readable = open(entry.value, &header, &payload);
  const bool is_base = chain_.last_batch.is_none() && id == chain_.base;
  const bool follows = header.previous == chain_.last_batch && header.position == chain_.position;
  if (!is_readable || (!is_base && !follows)) {
    UnexpectedBatch batch = describe(id, entry, is_readable, header);
    if (!unexpected_.has_value()) {
      unexpected_ = std::move(batch);
    } else if (batch.previous == unexpected_->id) {
      fail_unreadable(unexpected_->why, unexpected_->missing);
    }
    return;
  }
  unexpected_.reset();  // the chain continues without it
  chain_.position = end_of(header, payload.size());
  chain_.last_batch = id;
  chain_.size += entry.value.size();
  context_.stats.batches_followed.add();
  apply_events(id, header.made_at, payload, apply);
}

ChainReader::UnexpectedBatch ChainReader::describe(const BatchId& id, const etcd::Entry& entry,
                                                   bool is_readable,
                                                   const BatchHeader& header) const {
  UnexpectedBatch batch{.put_at = entry.modified, .id = id, .missing = id, .unreadable = true};
  batch.why = "batch " + to_text(id);
  if (const std::uint32_t version = version_of_batch(entry.value); version > kChainVersion) {
    batch.why += newer_than_known(version);
  } else if (!is_readable) {
    batch.why += " is damaged";
  } else {
    batch.previous = header.previous;
    if (header.previous > chain_.last_batch) batch.missing = header.previous;
    batch.why += " follows " + to_text(header.previous) + ", and the last one seen is " +
                 to_text(chain_.last_batch);
    batch.unreadable = loading_;
  }
  return batch;
}

// A lease keeps the time that was left of it when its batch was made.
void ChainReader::apply_events(const BatchId& id, Time made_at, std::string_view payload,
                               const Apply& apply) {
  const std::string at = "batch " + to_text(id);
  Event event{};
  while (!payload.empty()) {
    if (!take_event(payload, &event)) {
      return fail_unreadable(at + " has a record that makes no sense", id);
    }
    const bool is_over = event.expires_at <= made_at;
    event.expires_at = Time{} + (is_over ? Duration(1) : event.expires_at - made_at);
    if (!apply(event)) {
      return fail_unreadable(at + " contradicts what came before, at key '" +
                                 std::string(event.key) + "', fence " + std::to_string(event.fence),
                             id);
    }
  }
}

void ChainReader::fail_unreadable(const std::string& why, const BatchId& batch) {
  failure_ = {why, true, batch};
}

}  // namespace lockd
