#include "replication/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockd {

using Status = etcd::Answer::Status;

constexpr Duration kDeadlineMax = std::chrono::seconds(20);

Follower::Follower(ReplicationContext& context, std::int64_t page)
    : context_(context), page_(page), reader_(context), deadline_(context.timeouts.deadline()) {}

Time Follower::turn(Time now, const ChainReader::Apply& apply) {
  if (stage_ == Stage::over) return Time::never();
  apply_pending(apply);
  if (loaded_all_ && stage_ == Stage::loads && !reader_.has_failed()) {
    reader_.finish_loading();
    must_watch_ = true;
    stage_ = Stage::watching;
  }
  if (reader_.has_failed()) {
    stop();
    return Time::never();
  }
  if (std::exchange(must_wait_, false)) next_try_ = now + context_.retry;
  const bool is_idle = stage_ == Stage::watching && !must_watch_ && reader_.in_doubt() == nullptr;
  if (in_flight_ || is_idle) return Time::never();
  if (now < next_try_) return next_try_;
  request_next();
  return Time::never();
}

void Follower::stop() {
  context_.client.unwatch();
  pending_.clear();
  stage_ = Stage::over;
}

void Follower::fail(const std::string& why) {
  reader_.fail(why);
  stop();
}

void Follower::request_next() {
  const EtcdKeys& keys = context_.keys;
  if (stage_ == Stage::begins) {
    request({.then = {etcd::get(keys.leader), etcd::get(keys.successor), etcd::get(keys.head),
                      etcd::get(keys.base)}},
            &Follower::on_beginning);
  } else if (stage_ == Stage::loads) {
    // The page ends at the head: keys behind it are not part of the chain.
    etcd::Operation page = etcd::get(next_key_);
    page.range_end = keys.batch(chain().head) + '\0';
    page.limit = page_;
    page.revision = loads_at_;
    request({.then = {page}}, &Follower::on_page);
  } else if (const auto* const unexpected = reader_.in_doubt()) {
    etcd::Operation head = etcd::get(keys.head);
    head.revision = unexpected->put_at;
    request({.then = {head}}, &Follower::on_head);
  } else {
    open_watch();
  }
}

// A page of large batches takes long over a slow link, so each failure doubles the deadline.
void Follower::request(const etcd::Txn& txn, void (Follower::*on_done)(const etcd::Answer&)) {
  in_flight_ = true;
  context_.client.execute(txn, deadline_, [this, on_done](const etcd::Answer& answer) {
    in_flight_ = false;
    if (stage_ == Stage::over) return;
    if (answer.status == Status::compacted) return fail("compacted before it was read");
    context_.errors.record(answer);
    refused_ = answer.status == Status::refused;
    if (answer.status == Status::done) return (this->*on_done)(answer);
    must_wait_ = true;
    deadline_ = std::min(2 * deadline_, std::max(kDeadlineMax, context_.timeouts.deadline()));
  });
}

void Follower::on_beginning(const etcd::Answer& answer) {
  reader_.begin(answer, 2, 3);
  if (reader_.has_failed()) return stop();
  for (const etcd::Entry& entry : answer.found[0]) pending_.push_back({entry});
  for (const etcd::Entry& entry : answer.found[1]) pending_.push_back({entry});
  loads_at_ = answer.revision;
  next_key_ = chain().base.is_none() ? context_.keys.batches : context_.keys.batch(chain().base);
  loaded_all_ = chain().head.is_none();
  stage_ = Stage::loads;
}

void Follower::on_page(const etcd::Answer& answer) {
  if (answer.store != chain().store) return fail(etcd::kAnotherStore);
  const std::vector<etcd::Entry>& page = answer.found.front();
  for (const etcd::Entry& entry : page) pending_.push_back({entry});
  loaded_all_ = page.empty() || std::cmp_less(page.size(), page_);
  if (!loaded_all_) next_key_ = page.back().key + '\0';
}

// A leader puts the head together with each batch, at one revision.
void Follower::on_head(const etcd::Answer& answer) {
  const std::vector<etcd::Entry>& head = answer.found.front();
  reader_.resolve(!head.empty() && head.front().modified == reader_.in_doubt()->put_at);
  if (reader_.has_failed()) stop();
}

// Begins with the last revision seen, because some of its changes may be missing.
void Follower::open_watch() {
  must_watch_ = false;
  context_.stats.watches.add();
  context_.client.watch(context_.keys.watched, context_.keys.watched_end,
                        std::max(chain().revision, loads_at_ + 1), *this);
}

void Follower::changed(const std::vector<etcd::Change>& changes) {
  if (stage_ != Stage::over) pending_.insert(pending_.end(), changes.begin(), changes.end());
}

void Follower::ended(bool compacted, const std::string&) {
  if (stage_ == Stage::over) return;
  if (compacted) return fail("compacted before it was watched");
  must_watch_ = must_wait_ = true;
}

// Changes behind an unexpected batch wait until the head decides about it.
void Follower::apply_pending(const ChainReader::Apply& apply) {
  auto change = pending_.begin();
  while (change != pending_.end() && reader_.in_doubt() == nullptr && !reader_.has_failed()) {
    reader_.apply(*change++, apply);
  }
  pending_.erase(pending_.begin(), change);
}

}  // namespace lockd
