#include "crash/holds.h"

#include <algorithm>
#include <string_view>

namespace lockd::crash {
namespace {

constexpr std::string_view kName = "name ";
constexpr std::string_view kSecret = "secret ";

std::string show(const Held& held) {
  return held.owner + ", limit " + std::to_string(held.limit) + ", ttl " +
         std::to_string(held.ttl.count()) + ", until " + std::to_string(held.expires_at.ns);
}

}  // namespace

std::string owner_of(const Holder& holder) {
  return holder.is_secret() ? std::string(kSecret) + std::to_string(holder.secret())
                            : std::string(kName) + std::string(holder.name());
}

Holder holder_of(const std::string& owner) {
  if (owner.starts_with(kSecret)) {
    return Holder::of_secret(std::stoull(owner.substr(kSecret.size())));
  }
  return {std::string_view(owner).substr(kName.size())};
}

std::string show(const HoldKey& key) {
  return (key.kind == Kind::lock ? "lock '" : "semaphore '") + key.key + "' fence " +
         std::to_string(key.fence);
}

void Holds::apply(const Event& event) {
  largest_fence_ = std::max(largest_fence_, event.fence);
  if (event.type == Event::Type::fence_floor) return;
  const HoldKey key{event.kind, std::string(event.key), event.fence};
  if (event.type == Event::Type::granted) {
    all_[key] = {owner_of(event.holder), event.limit, event.ttl, event.expires_at};
    return;
  }
  const auto found = all_.find(key);
  if (found == all_.end()) return;
  if (event.type == Event::Type::ended) {
    all_.erase(found);
  } else {
    found->second.ttl = event.ttl;
    found->second.expires_at = event.expires_at;
  }
}

const Held* Holds::find(const HoldKey& key) const {
  const auto found = all_.find(key);
  return found == all_.end() ? nullptr : &found->second;
}

std::string Holds::differs_from(const Holds& expected) const {
  if (all_ == expected.all_) return {};
  for (const auto& [key, held] : expected.all_) {
    const Held* const mine = find(key);
    if (mine == nullptr) return show(key) + " is missing: " + show(held);
    if (*mine != held) return show(key) + " is " + show(*mine) + ", not " + show(held);
  }
  for (const auto& [key, held] : all_) {
    if (expected.find(key) == nullptr) return show(key) + " should not be there: " + show(held);
  }
  return {};
}

}  // namespace lockd::crash
