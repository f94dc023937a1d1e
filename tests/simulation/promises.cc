#include "simulation/promises.h"

#include <algorithm>
#include <chrono>

#include "crash/violation.h"

namespace lockd::simulation {
namespace {

using crash::violated;

std::string show(const Known& known) {
  return (known.key.kind == Kind::lock ? "lock " : "semaphore ") + known.key.name() + " fence " +
         std::to_string(known.fence) + " of client " + std::to_string(known.client) + " (" +
         known.holder + ")" + (known.terms.mode == Mode::shared ? ", shared" : "") + ", permits " +
         std::to_string(known.terms.permits) + ", certain until " +
         std::to_string(known.certain_until.ns);
}

// Of a token, which ends with it; a name has none.
std::string_view secret_of(const Known& known) {
  constexpr std::size_t kToken = 32;
  if (known.holder.size() != kToken) return {};
  return std::string_view(known.holder).substr(kToken / 2);
}

}  // namespace

void Promises::granted(Time now, const Known& known, Fence largest_when_asked) {
  ++grants_;
  Told& told = told_[index(known.key)];
  Known* before = find(known.key, known.fence);
  if (before != nullptr && before->holder != known.holder) {
    violated("one-grant-one-holder", show(known) + ", and " + show(*before));
  }
  if (before == nullptr && known.fence <= largest_when_asked) {
    violated("fences-rise", show(known) + ", but " + std::to_string(largest_when_asked) +
                                " had been told before it was asked for");
  }
  told.largest = std::max(told.largest, known.fence);
  // Another client of its secret has asked about it, perhaps to release it, and has not heard yet.
  const bool may_be_released =
      before != nullptr && before->in_question && before->client != known.client;
  // Acquiring again shortens neither the hold nor its own lease.
  const Known last = before == nullptr ? Known{} : *before;
  if (before != nullptr) {
    if (!secret_of(known).empty()) ++grants_again_;
    *before = known;
  } else {
    told.known.push_back(known);
  }
  Known& kept = *find(known.key, known.fence);
  kept.heard = now;
  kept.ttl = std::max(last.ttl, known.ttl);
  kept.over_at = std::max(last.over_at, now + kept.ttl);
  if (!kept.may_go && !last.may_go)
    kept.certain_until = std::max(last.certain_until, kept.certain_until);
  if (may_be_released) {
    kept.may_go = true;
    kept.certain_until = std::min(kept.certain_until, now);
  }
  if (is_revoked(known.key, known.fence)) kept.certain_until = std::min(kept.certain_until, now);
  if (const Known* other = other_by_secret(kept, now)) {
    violated("one-secret-one-grant", show(known) + ", and " + show(*other));
  }
  if (kept.certain_until <= now) return;
  if (const Known* other = too_many(kept, now)) {
    violated("exclusion",
             "at " + std::to_string(now.ns) + " " + show(known) + ", and " + show(*other));
  }
}

// Certain, though this was granted later or is certain too; null if there is none.
const Known* Promises::other_by_secret(const Known& known, Time now) const {
  for (const Known& each : told_[index(known.key)].known) {
    const bool is_later = known.fence > each.fence || known.certain_until > now;
    const bool is_other = each.fence != known.fence && each.certain_until > now && is_later;
    if (is_other && !secret_of(each).empty() && secret_of(each) == secret_of(known)) return &each;
  }
  return nullptr;
}

// One that is certain and cannot be, now that `known` is; null if all can. Of a semaphore, the last
// of those who have more than there is.
const Known* Promises::too_many(const Known& known, Time now) const {
  const Told& told = told_[index(known.key)];
  std::uint64_t permits = 0;
  const Known* other = nullptr;
  for (const Known& each : told.known) {
    if (each.certain_until <= now) continue;
    permits += each.terms.permits;
    const bool share = each.terms.mode == Mode::shared && known.terms.mode == Mode::shared;
    const bool fit = known.key.kind == Kind::semaphore || share || each.fence == known.fence;
    if (!fit) return &each;
    other = &each;
  }
  if (known.key.kind == Kind::lock) return nullptr;
  return permits > std::max(limit_, told.limit_max) ? other : nullptr;
}

std::vector<Known*> Promises::of_client(std::uint32_t client) {
  std::vector<Known*> found;
  for (Told& told : told_) {
    for (Known& known : told.known) {
      if (known.client == client && !known.in_question) found.push_back(&known);
    }
  }
  return found;
}

Known* Promises::find(Key key, Fence fence) {
  for (Known& known : told_[index(key)].known) {
    if (known.fence == fence) return &known;
  }
  return nullptr;
}

const Known* Promises::find_by_secret(Key key, std::string_view secret) const {
  const Known* found = nullptr;
  for (const Known& known : told_[index(key)].known) {
    if (secret_of(known) != secret) continue;
    if (found == nullptr || found->fence < known.fence) found = &known;
  }
  return found;
}

const Known* Promises::certain_on(std::uint64_t connection, Time now) const {
  for (const Told& told : told_) {
    for (const Known& known : told.known) {
      if (known.connection == connection && known.certain_until > now && !known.in_question) {
        return &known;
      }
    }
  }
  return nullptr;
}

void Promises::forget(const Known& known) {
  std::vector<Known>& all = told_[index(known.key)].known;
  std::erase_if(all, [fence = known.fence](const Known& each) { return each.fence == fence; });
}

void Promises::revoked(Key key, Fence fence, Time now) {
  told_[index(key)].revoked.emplace(fence, Time::never());
  if (Known* known = find(key, fence)) known->certain_until = std::min(known->certain_until, now);
}

void Promises::revocation_told(Key key, Fence fence, Time now) {
  told_[index(key)].revoked[fence] = now;
}

bool Promises::was_revoked_before(Key key, Fence fence, Time then) const {
  const std::map<Fence, Time>& revoked = told_[index(key)].revoked;
  const auto found = revoked.find(fence);
  return found != revoked.end() && found->second < then;
}

void Promises::resized(Key key, std::uint32_t limit) {
  Told& told = told_[index(key)];
  told.limit_max = std::max(told.limit_max, limit);
  told.limit_min = std::min(told.limit_min, limit);
}

void Promises::connection_lost(std::uint64_t connection, bool holds_go, Time now) {
  for (Told& told : told_) {
    for (Known& known : told.known) {
      if (known.connection != connection) continue;
      known.connection = 0;
      if (!holds_go) continue;
      known.may_go = true;
      known.certain_until = std::min(known.certain_until, now);
    }
  }
}

void Promises::all_lost(Time now) {
  for (Told& told : told_) {
    for (Known& known : told.known) known.certain_until = std::min(known.certain_until, now);
  }
}

// What has only just been over is kept: to ask for it must be refused.
void Promises::prune(Time now) {
  for (Told& told : told_) {
    std::erase_if(told.known, [&](const Known& known) {
      return !known.in_question &&
             std::max(known.certain_until, known.heard) + std::chrono::seconds(10) < now;
    });
  }
}

}  // namespace lockd::simulation
