#include "crash/ledger.h"

#include <algorithm>

#include "crash/violation.h"

namespace lockd::crash {
namespace {

constexpr std::size_t kEndedKept = 20;
constexpr std::size_t kSetsKept = 20;

bool is_same_key(const HoldKey& a, const HoldKey& b) { return a.kind == b.kind && a.key == b.key; }

}  // namespace

void Ledger::granted(const HoldKey& key, const std::string& owner, SessionId session,
                     Time expires_at, Position told_at, bool is_of_set) {
  Entry& entry = entries_[key];
  entry.owner = owner;
  entry.session = session;
  entry.leases.push_back({told_at, expires_at, is_of_set});
}

void Ledger::asked_for_all(const std::string& owner, const std::vector<HoldKey>& keys) {
  Fence last = 0;
  for (const auto& [other, entry] : entries_) {
    const auto is_it = [&other = other](const HoldKey& key) { return is_same_key(key, other); };
    const bool is_its = entry.owner == owner && std::ranges::any_of(keys, is_it);
    if (is_its) last = std::max(last, other.fence);
  }
  sets_.push_back({owner, keys, last});
  if (sets_.size() > kSetsKept) sets_.erase(sets_.begin());
}

void Ledger::touched(const std::string& owner, const HoldKey& key) {
  std::erase_if(sets_, [&](const SetAsked& set) {
    return set.owner == owner && std::ranges::any_of(set.keys, [&](const HoldKey& each) {
             return is_same_key(each, key);
           });
  });
}

std::vector<HoldKey> Ledger::granted_with(const HoldKey& key, Position durable) const {
  std::vector<HoldKey> keys;
  for (const auto& [other, entry] : entries_) {
    const bool is_its = other.fence == key.fence && entry.owner == entries_.at(key).owner;
    if (is_its && !entry.end_asked && entry.is_known(durable)) keys.push_back(other);
  }
  return keys;
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
  for (const SetAsked& set : sets_) check(set, recovered, now);
}

// What has run out may end one by one.
void Ledger::check(const SetAsked& set, const Holds& recovered, Time now) {
  std::vector<Fence> fences;
  for (const auto& [key, held] : recovered.all()) {
    const auto is_it = [&key = key](const HoldKey& each) { return is_same_key(each, key); };
    const bool is_its = held.owner == set.owner && std::ranges::any_of(set.keys, is_it);
    if (!is_its || key.fence <= set.last) continue;
    if (held.expires_at <= now) return;
    fences.push_back(key.fence);
  }
  const bool is_one = std::ranges::adjacent_find(fences, std::not_equal_to()) == fences.end();
  if (fences.empty() || (fences.size() == set.keys.size() && is_one)) return;
  violated("all-or-none", std::to_string(fences.size()) + " of " + std::to_string(set.keys.size()) +
                              " keys are held by " + set.owner + ", among them " +
                              show(set.keys.front()));
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
                   [&](const Lease& lease) { return lease.is(held->expires_at); })) {
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
  sets_.clear();
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
