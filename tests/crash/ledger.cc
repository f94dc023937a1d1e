#include "crash/ledger.h"

#include <algorithm>

#include "crash/violation.h"

namespace lockd::crash {
namespace {

constexpr std::size_t kEndedKept = 20;

}  // namespace

void Ledger::granted(const HoldKey& key, const std::string& owner, SessionId session,
                     Time expires_at, Position told_at) {
  Entry& entry = entries_[key];
  entry.owner = owner;
  entry.session = session;
  entry.leases.push_back({told_at, expires_at});
}

void Ledger::renewed(const HoldKey& key, Time expires_at) {
  entries_.at(key).leases.push_back({kNotCommitted, expires_at});
}

void Ledger::session_ends(SessionId session) {
  for (auto& [key, entry] : entries_) {
    if (entry.session != session || entry.end_asked) continue;
    entry.end_asked = true;
    ended(key);
  }
}

void Ledger::commit(Position position) {
  for (auto& [key, entry] : entries_) {
    for (Lease& lease : entry.leases) {
      if (lease.told_at == kNotCommitted) lease.told_at = position;
    }
  }
  for (const HoldKey& key : end_told_now_) entries_.at(key).end_told_at = position;
  end_told_now_.clear();
}

const std::pair<const HoldKey, Ledger::Entry>* Ledger::pick(Chance& chance,
                                                            Position durable) const {
  std::vector<const std::pair<const HoldKey, Entry>*> known;
  for (const auto& pair : entries_) {
    if (!pair.second.end_asked && pair.second.is_known(durable)) known.push_back(&pair);
  }
  return known.empty() ? nullptr : known[chance.below(known.size())];
}

std::span<const Ledger::Lease> Ledger::Entry::possible_leases(Position durable) const {
  std::size_t last = 0;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (leases[i].told_at <= durable) last = i;
  }
  return std::span(leases).subspan(last);
}

void Ledger::check(const Holds& recovered, Position durable, Time now) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.is_known(durable)) check(key, entry, recovered.find(key), durable, now);
  }
}

void Ledger::check(const HoldKey& key, const Entry& entry, const Held* held, Position durable,
                   Time now) {
  const auto broken = [&](const std::string& how) {
    violated("acknowledged-in-force", show(key) + " " + how);
  };
  if (entry.end_told_at <= durable) {
    if (held != nullptr) broken("was ended, and is held");
    return;
  }
  const auto leases = entry.possible_leases(durable);
  const bool may_be_over = std::any_of(leases.begin(), leases.end(),
                                       [&](const Lease& lease) { return lease.expires_at <= now; });
  if (entry.end_asked || may_be_over) return;
  if (held == nullptr) broken("was granted to " + entry.owner + ", and is free");
  if (held->owner != entry.owner) broken("belongs to " + held->owner + ", not to " + entry.owner);
  if (std::none_of(leases.begin(), leases.end(),
                   [&](const Lease& lease) { return lease.expires_at == held->expires_at; })) {
    broken("was promised until " + std::to_string(leases.front().expires_at.ns) + ", and ends at " +
           std::to_string(held->expires_at.ns));
  }
}

Fence Ledger::largest_fence(Position durable) const {
  Fence largest = largest_pruned_;
  for (const auto& [key, entry] : entries_) {
    if (entry.is_known(durable)) largest = std::max(largest, key.fence);
  }
  return largest;
}

void Ledger::restart(Position durable) {
  std::erase_if(entries_, [&](const auto& pair) {
    const auto& [key, entry] = pair;
    const bool end_unknown = entry.end_asked && entry.end_told_at > durable;
    if (!entry.is_known(durable)) return true;
    if (end_unknown) largest_pruned_ = std::max(largest_pruned_, key.fence);
    return end_unknown;
  });
  for (auto& [key, entry] : entries_) {
    for (Lease& lease : entry.leases) lease.told_at = lease.told_at <= durable ? kTold : kNeverTold;
    if (entry.end_asked) entry.end_told_at = kTold;
    entry.session = 0;
  }
  end_told_now_.clear();
}

void Ledger::forget(Position durable) {
  largest_pruned_ = largest_fence(durable);
  entries_.clear();
  end_told_now_.clear();
}

// What has run out, whoever ended it; and of what was ended the oldest, so that enough is left to
// find one that comes back.
void Ledger::prune(Position durable, Time now) {
  std::vector<HoldKey> ended;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = at->second;
    if (entry.is_known(durable) && entry.end_told_at <= durable) ended.push_back(at->first);
    const bool is_over = std::all_of(entry.leases.begin(), entry.leases.end(),
                                     [&](const Lease& lease) { return lease.expires_at <= now; });
    if (is_over && entry.is_known(durable) && !entry.end_asked) {
      largest_pruned_ = std::max(largest_pruned_, at->first.fence);
      at = entries_.erase(at);
    } else {
      ++at;
    }
  }
  std::sort(ended.begin(), ended.end(),
            [](const HoldKey& a, const HoldKey& b) { return a.fence < b.fence; });
  const std::size_t excess = ended.size() - std::min(ended.size(), kEndedKept);
  for (std::size_t i = 0; i < excess; ++i) {
    largest_pruned_ = std::max(largest_pruned_, ended[i].fence);
    entries_.erase(ended[i]);
  }
}

}  // namespace lockd::crash
