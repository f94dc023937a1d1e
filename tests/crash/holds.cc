#include "crash/holds.h"

#include <algorithm>
#include <string_view>

namespace lockd::crash {
namespace {

constexpr std::string_view kName = "name ";
constexpr std::string_view kSecret = "secret ";

std::string show(const Held& held) {
  return held.owner + crash::show(held.client) + ", limit " + std::to_string(held.limit) +
         " (first " + std::to_string(held.first_limit) + "), " +
         (held.mode == Mode::shared ? "shared" : "permits " + std::to_string(held.permits)) +
         ", ttl " + std::to_string(held.ttl.count()) + ", until " +
         std::to_string(held.expires_at.ns);
}

ClientIdentity copy_of(const ClientView& client) {
  return {std::string(client.name), std::string(client.peer), std::string(client.note)};
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

std::string show(const ClientIdentity& client) {
  if (ClientView(client).empty()) return {};
  return ", client '" + client.name + "', peer '" + client.peer + "', note '" + client.note + "'";
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
    all_[key] = {owner_of(event.holder),
                 copy_of(event.client),
                 event.limit,
                 event.first_limit,
                 event.mode,
                 event.permits,
                 event.ttl,
                 event.expires_at};
    return;
  }
  if (event.type == Event::Type::resized) return resize(event);
  const auto found = all_.find(key);
  if (found == all_.end()) return;
  if (event.type == Event::Type::ended) {
    all_.erase(found);
  } else {
    found->second.ttl = event.ttl;
    found->second.expires_at = event.expires_at;
  }
}

// All holds of the key know the limit that is in force, and the one that was before any other.
void Holds::resize(const Event& event) {
  const auto from = all_.lower_bound({event.kind, std::string(event.key), 0});
  for (auto hold = from; hold != all_.end(); ++hold) {
    if (hold->first.kind != event.kind || hold->first.key != event.key) return;
    Held& held = hold->second;
    if (held.first_limit == 0) held.first_limit = held.limit;
    held.limit = event.limit;
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
