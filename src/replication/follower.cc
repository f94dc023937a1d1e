#include "replication/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "journal/format.h"
#include "replication/records.h"

namespace lockd {

using etcd::Answer;
using etcd::Change;
using etcd::Entry;
using Status = Answer::Status;

namespace {

std::string newer_than_known(std::uint32_t version) {
  return " is of version " + std::to_string(version) + ", and this program knows version " +
         std::to_string(kChainVersion) +
         "; run on every node the version of the leader, or a newer one";
}

constexpr Duration kRpcMax = std::chrono::seconds(20);

// The time left of the lease when its batch was made.
Duration left(const Event& event, Time made_at) {
  const bool is_over = event.expires_at <= made_at;
  return is_over ? Duration(1) : event.expires_at - made_at;
}

}  // namespace

Follower::Follower(etcd::Client& client, const EtcdKeys& keys, const FollowerOptions& options,
                   ReplicationStats& stats, EtcdErrorLog& errors)
    : client_(client),
      keys_(keys),
      options_(options),
      stats_(stats),
      errors_(errors),
      rpc_(options.rpc) {}

Time Follower::turn(Time now, const Apply& apply) {
  if (stage_ == Stage::over) return Time::never();
  apply_pending(apply);
  if (loaded_all_ && stage_ == Stage::loads) finish_loading();
  if (stage_ == Stage::over) return Time::never();
  if (std::exchange(must_wait_, false)) next_try_ = now + options_.retry;
  const bool idle = !asking_ && (stage_ != Stage::watching || must_watch_ || is_in_doubt());
  if (!idle) return Time::never();
  if (now < next_try_) return next_try_;
  switch (stage_) {
    case Stage::begins: request_beginning(); break;
    case Stage::loads: request_page(); break;
    case Stage::watching: is_in_doubt() ? request_head() : open_watch(); break;
    case Stage::over: break;
  }
  return Time::never();
}

void Follower::stop() {
  client_.unwatch();
  pending_.clear();
  stage_ = Stage::over;
}

void Follower::request_beginning() {
  asking_ = true;
  client_.execute({.then = {etcd::get(keys_.leader), etcd::get(keys_.head), etcd::get(keys_.base),
                            etcd::get(keys_.successor)}},
                  rpc_, [this](const Answer& answer) { on_beginning(answer); });
}

void Follower::on_beginning(const Answer& answer) {
  asking_ = false;
  if (stage_ == Stage::over) return;
  if (!is_done(answer)) return;
  store_ = answer.store;
  loads_at_ = revision_ = answer.revision;
  const auto batch_id_at = [&](std::size_t i) -> std::optional<BatchId> {
    if (answer.found[i].empty()) return BatchId{};
    return parse_batch_id(answer.found[i].front().value);
  };
  const std::optional<BatchId> head = batch_id_at(1);
  const std::optional<BatchId> base = batch_id_at(2);
  if (!head.has_value() || !base.has_value()) {
    return lose_unreadable("the head or the base is no place");
  }
  for (const Entry& entry : answer.found[0]) pending_.push_back({entry});
  for (const Entry& entry : answer.found[3]) pending_.push_back({entry});
  for (const Entry& entry : answer.found[2]) base_revision_ = entry.modified;
  head_ = *head;
  base_ = *base;
  next_key_ = base_.is_none() ? keys_.batches : keys_.batch(base_);
  loaded_all_ = head_.is_none();
  stage_ = Stage::loads;
}

// A page of large batches takes long over a slow link, so each failure doubles the timeout.
bool Follower::is_done(const Answer& answer) {
  errors_.record(answer);
  refused_ = answer.status == Status::refused;
  if (answer.status == Status::done) return true;
  must_wait_ = true;
  rpc_ = std::min(2 * rpc_, std::max(kRpcMax, options_.rpc));
  return false;
}

// The page ends at the head: keys behind it are not part of the chain.
void Follower::request_page() {
  asking_ = true;
  etcd::Operation page = etcd::get(next_key_);
  page.range_end = keys_.batch(head_) + '\0';
  page.limit = options_.page;
  page.revision = loads_at_;
  client_.execute({.then = {page}}, rpc_, [this](const Answer& answer) { on_page(answer); });
}

void Follower::on_page(const Answer& answer) {
  asking_ = false;
  if (stage_ == Stage::over) return;
  if (answer.status == Status::compacted) return lose("compacted while it was read");
  if (!is_done(answer)) return;
  if (answer.store != store_) return lose(etcd::kAnotherStore);
  const std::vector<Entry>& page = answer.found.front();
  for (const Entry& entry : page) pending_.push_back({entry});
  if (page.empty() || std::cmp_less(page.size(), options_.page)) {
    loaded_all_ = true;
  } else {
    next_key_ = page.back().key + '\0';
  }
}

// All pages were read at one revision, so a missing batch is missing for every reader.
void Follower::finish_loading() {
  if (last_batch_ != head_) {
    const UnexpectedBatch end{
        .missing = head_,
        .why = "the head is " + to_text(head_) + ", and the last batch is " + to_text(last_batch_)};
    const UnexpectedBatch unexpected = unexpected_.value_or(end);
    return lose_unreadable(unexpected.why, unexpected.missing);
  }
  unexpected_.reset();
  must_watch_ = true;
  stage_ = Stage::watching;
}

// Begins with the last revision seen, because some of its changes may be missing.
void Follower::open_watch() {
  must_watch_ = false;
  stats_.watches.add();
  client_.watch(keys_.watched, keys_.watched_end, std::max(revision_, loads_at_ + 1), *this);
}

void Follower::changed(const std::vector<Change>& changes) {
  if (stage_ == Stage::over) return;
  pending_.insert(pending_.end(), changes.begin(), changes.end());
}

void Follower::ended(bool compacted, const std::string&) {
  if (stage_ == Stage::over) return;
  if (compacted) return lose("compacted before it was watched");
  must_watch_ = must_wait_ = true;
}

// Changes behind an unexpected batch wait until the head decides about it.
void Follower::apply_pending(const Apply& apply) {
  if (is_in_doubt()) return;
  const std::vector<Change> pending = std::exchange(pending_, {});
  for (auto change = pending.begin(); change != pending.end(); ++change) {
    apply_change(*change, apply);
    if (stage_ == Stage::over) return;
    if (is_in_doubt()) return pending_.assign(std::next(change), pending.end());
  }
}

void Follower::apply_change(const Change& change, const Apply& apply) {
  revision_ = std::max(revision_, change.entry.modified);
  if (change.entry.key == keys_.leader) return apply_leader(change);
  if (change.entry.key == keys_.successor) return apply_successor(change);
  if (change.erased) return;  // replaced by a snapshot
  if (const auto id = keys_.batch_id_of(change.entry.key)) {
    apply_batch(*id, change.entry, apply);
  }
}

void Follower::apply_leader(const Change& change) {
  if (change.entry.modified < leader_changed_) return;  // repeated
  leader_changed_ = change.entry.modified;
  if (change.erased) {
    leader_ = {};
    return;
  }
  const std::uint32_t version = version_of_record(change.entry.value);
  if (version > kChainVersion) {
    return lose_unreadable("the leader's record" + newer_than_known(version));
  }
  auto record = leader_record_in(change.entry.value);
  if (!record.has_value()) {
    return lose_unreadable("the leader's key says '" + change.entry.value + "'");
  }
  leader_ = {change.entry.modified, std::move(*record)};
  leader_text_ = change.entry.value;
  successor_.clear();
}

// The successor is put just before the leader's key is erased, and erased when that is put.
void Follower::apply_successor(const Change& change) {
  if (change.entry.modified < leader_changed_) return;  // repeated, or of an earlier term
  successor_ = change.erased ? "" : successor_in(change.entry.value);
}

void Follower::apply_batch(const BatchId& id, const Entry& entry, const Apply& apply) {
  if (id <= last_batch_) {
    stats_.batches_repeated.add();
    return;
  }
  BatchHeader header;
  std::string_view payload;
  if (const auto unexpected = check_batch(id, entry, &header, &payload))
    return on_unexpected(*unexpected);
  unexpected_.reset();  // the chain continues without it
  position_ = end_of(header, payload.size());
  last_batch_ = id;
  size_ += entry.value.size();
  stats_.batches_followed.add();
  apply_events(id, header, payload, apply);
}

// Nothing if the batch follows the last one; then `header` and `payload` are set.
std::optional<Follower::UnexpectedBatch> Follower::check_batch(const BatchId& id,
                                                               const Entry& entry,
                                                               BatchHeader* header,
                                                               std::string_view* payload) const {
  const std::uint32_t version = version_of_batch(entry.value);
  const bool readable = version <= kChainVersion && open(entry.value, header, payload);
  const bool is_base = last_batch_.is_none() && id == base_;
  if (readable && is_base) return {};
  if (readable && header->previous == last_batch_ && header->position == position_) return {};

  UnexpectedBatch unexpected{.put_at = entry.modified, .id = id, .missing = id, .unreadable = true};
  unexpected.why = "batch " + to_text(id);
  if (version > kChainVersion) {
    unexpected.why += newer_than_known(version);
  } else if (!readable) {
    unexpected.why += " is damaged";
  } else {
    unexpected.previous = header->previous;
    if (header->previous > last_batch_) unexpected.missing = header->previous;
    unexpected.why += " follows " + to_text(header->previous) + ", and the last one seen is " +
                      to_text(last_batch_);
    unexpected.unreadable = stage_ == Stage::loads;
  }
  return unexpected;
}

// A batch that names the unexpected one as its predecessor proves that it is part of the chain.
void Follower::on_unexpected(const UnexpectedBatch& unexpected) {
  if (!unexpected_.has_value()) {
    unexpected_ = unexpected;
  } else if (unexpected.previous == unexpected_->id) {
    const UnexpectedBatch first = *unexpected_;
    lose_unreadable(first.why, first.missing);
  }
}

// The head at the revision of the unexpected batch.
void Follower::request_head() {
  asking_ = true;
  etcd::Operation head = etcd::get(keys_.head);
  head.revision = unexpected_->put_at;
  client_.execute({.then = {head}}, rpc_, [this](const Answer& answer) { on_head(answer); });
}

void Follower::on_head(const Answer& answer) {
  asking_ = false;
  if (stage_ == Stage::over) return;
  if (answer.status == Status::compacted) return lose("compacted before it was looked at");
  if (!is_done(answer)) return;
  const UnexpectedBatch unexpected = *std::exchange(unexpected_, {});
  const std::vector<Entry>& head = answer.found.front();
  const bool is_of_chain = !head.empty() && head.front().modified == unexpected.put_at;
  if (!is_of_chain) return;
  unexpected.unreadable ? lose_unreadable(unexpected.why, unexpected.missing)
                        : lose(unexpected.why);
}

void Follower::apply_events(const BatchId& id, const BatchHeader& header, std::string_view payload,
                            const Apply& apply) {
  const std::string at = "batch " + to_text(id);
  Event event{};
  while (!payload.empty()) {
    if (!take_event(payload, &event)) {
      return lose_unreadable(at + " has a record that makes no sense", id);
    }
    event.expires_at = Time{} + left(event, header.made_at);
    if (!apply(event)) {
      return lose_unreadable(at + " contradicts what came before, at key '" +
                                 std::string(event.key) + "', fence " + std::to_string(event.fence),
                             id);
    }
  }
}

void Follower::lose_unreadable(const std::string& why, const BatchId& batch) {
  unreadable_ = true;
  unreadable_batch_ = batch;
  lose(why);
}

void Follower::lose(const std::string& why) {
  lost_ = why;
  stop();
}

}  // namespace lockd
