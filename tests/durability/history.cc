#include "durability/history.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace lockd {
namespace {

std::string show(const ToldGrant& grant) {
  const auto us = [](Instant instant) {
    return std::to_string(
        std::chrono::duration_cast<std::chrono::microseconds>(instant.time_since_epoch()).count());
  };
  return "fence " + std::to_string(grant.fence) + " (asked " + us(grant.asked) + ", told " +
         us(grant.told) + ", held until " + us(grant.held_until) + " us)";
}

}  // namespace

void History::add(const std::string& key, std::uint32_t limit, const ToldGrant& grant) {
  Key& found = keys_[key];
  found.limit = limit;
  found.grants.push_back(grant);
  ++size_;
}

std::string History::contradiction() const {
  for (const auto& [name, key] : keys_) {
    if (const std::string what = contradiction(key); !what.empty()) {
      return "key '" + name + "': " + what;
    }
  }
  return {};
}

// In the order of their fences, each grant is compared with the one before it that says most: with
// the latest asked for, and with the one that is the last but `limit` to end.
std::string History::contradiction(Key key) {
  std::sort(key.grants.begin(), key.grants.end(),
            [](const ToldGrant& a, const ToldGrant& b) { return a.fence < b.fence; });
  const auto ends_later = [](const ToldGrant* a, const ToldGrant* b) {
    return a->held_until > b->held_until;
  };
  // The `limit` grants that end last, the first of them to end on top.
  std::priority_queue<const ToldGrant*, std::vector<const ToldGrant*>, decltype(ends_later)> last(
      ends_later);
  const ToldGrant* before = nullptr;
  const ToldGrant* last_asked = nullptr;
  for (const ToldGrant& grant : key.grants) {
    if (before != nullptr && before->fence == grant.fence) {
      return "granted twice: " + show(*before) + " and " + show(grant);
    }
    if (last_asked != nullptr && grant.told < last_asked->asked) {
      return show(grant) + " was told before " + show(*last_asked) + " was asked for";
    }
    if (last.size() == key.limit && grant.told < last.top()->held_until) {
      return show(grant) + " was granted while " + show(*last.top()) + " held" +
             (key.limit == 1 ? "" : ", and others too");
    }
    last.push(&grant);
    if (last.size() > key.limit) last.pop();
    if (last_asked == nullptr || last_asked->asked < grant.asked) last_asked = &grant;
    before = &grant;
  }
  return {};
}

}  // namespace lockd
