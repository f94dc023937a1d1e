// The rules of Subscriptions over a plain list that is looked through from end to end, for tests.
#pragma once

#include <algorithm>
#include <climits>
#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/pattern.h"
#include "pubsub/subscriptions.h"

namespace lockd {

// Precondition: is_pattern(pattern) and is_channel(channel).
inline bool matches(std::string_view pattern, std::string_view channel) noexcept {
  Tokens wanted(pattern);
  Tokens given(channel);
  std::string_view token;
  for (std::string_view want; wanted.next(&want);) {
    if (!given.next(&token)) return false;
    if (want == kAnyTokens) return true;
    if (want != kAnyToken && want != token) return false;
  }
  return given.at_end();
}

class SubscriptionsModel {
 public:
  bool add(SubscriberId subscriber, const std::string& pattern, const std::string& group) {
    auto it = find(pattern, group);
    if (it == audiences_.end()) it = audiences_.insert(it, {pattern, group, {}});
    if (std::count(it->members.begin(), it->members.end(), subscriber) != 0) return false;
    it->members.push_back(subscriber);
    return true;
  }
  bool remove(SubscriberId subscriber, const std::string& pattern, const std::string& group) {
    const auto it = find(pattern, group);
    if (it == audiences_.end()) return false;
    const bool removed = std::erase(it->members, subscriber) != 0;
    forget_empty();
    return removed;
  }
  void remove_all(SubscriberId subscriber) {
    for (Audience& a : audiences_) std::erase(a.members, subscriber);
    forget_empty();
  }

  std::vector<SubscriberId> match(std::string_view channel) {
    std::vector<Audience*> matching;
    for (Audience& a : audiences_) {
      if (matches(a.pattern, channel)) matching.push_back(&a);
    }
    std::stable_sort(matching.begin(), matching.end(),
                     [](auto* a, auto* b) { return rank(a->pattern) < rank(b->pattern); });
    std::vector<SubscriberId> out;
    const auto served = [&out](SubscriberId id) {
      return std::find(out.begin(), out.end(), id) != out.end();
    };
    for (const Audience* a : matching) {
      if (!a->group.empty()) continue;
      for (const SubscriberId id : a->members) {
        if (!served(id)) out.push_back(id);
      }
    }
    for (Audience* a : matching) {
      if (a->group.empty()) continue;
      const auto next = std::find_if_not(a->members.begin(), a->members.end(), served);
      if (next == a->members.end()) continue;
      out.push_back(*next);
      std::rotate(next, next + 1, a->members.end());
    }
    return out;
  }

  struct Subscription {
    std::string pattern;
    std::string group;
    SubscriberId subscriber;

    friend auto operator<=>(const Subscription&, const Subscription&) = default;
  };
  // All that match.
  std::set<Subscription> matching(std::string_view channel) const {
    std::set<Subscription> matching;
    for (const Audience& a : audiences_) {
      if (!matches(a.pattern, channel)) continue;
      for (const SubscriberId id : a.members) matching.insert({a.pattern, a.group, id});
    }
    return matching;
  }

  std::vector<AudienceStatus> list() const {
    std::vector<AudienceStatus> all;
    for (const Audience& a : audiences_) all.push_back({a.pattern, a.group, a.members.size()});
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tie(a.pattern, a.group) < std::tie(b.pattern, b.group);
    });
    return all;
  }

 private:
  struct Audience {
    std::string pattern;
    std::string group;
    std::vector<SubscriberId> members;
  };

  // The order in which subscriptions.h says that audiences are visited.
  static std::pair<int, std::string> rank(std::string_view pattern) {
    int size = 0;
    std::string shape;
    Tokens tokens(pattern);
    for (std::string_view token; tokens.next(&token); ++size) shape += token == "*" ? '1' : '0';
    return {pattern.ends_with('>') ? size : INT_MAX, shape};
  }
  std::vector<Audience>::iterator find(const std::string& pattern, const std::string& group) {
    return std::find_if(audiences_.begin(), audiences_.end(), [&](const Audience& a) {
      return a.pattern == pattern && a.group == group;
    });
  }
  void forget_empty() {
    std::erase_if(audiences_, [](const Audience& a) { return a.members.empty(); });
  }

  std::vector<Audience> audiences_;  // the oldest first
};

}  // namespace lockd
