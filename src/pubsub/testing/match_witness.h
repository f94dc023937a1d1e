// What subscriptions.h promises of a match in pieces, between which subscriptions come and go; for
// tests. Each function says what was broken, or nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pubsub/subscriptions.h"
#include "pubsub/testing/subscriptions_model.h"

namespace lockd {

// A match that is made at once.
inline std::vector<SubscriberId> match_all(Subscriptions& subscriptions, std::string_view channel) {
  std::vector<SubscriberId> out;
  subscriptions.begin_match(channel);
  subscriptions.match_some(SIZE_MAX, out);
  return out;
}

class MatchWitness {
 public:
  // The match begins.
  MatchWitness(const SubscriptionsModel& model, std::string_view channel)
      : model_(model),
        channel_(channel),
        now_(model.matching(channel)),
        throughout_(now_),
        ever_(now_) {}

  // To be called after each change.
  void changed() {
    now_ = model_.matching(channel_);
    std::erase_if(throughout_, [this](const auto& s) { return !now_.contains(s); });
    ever_.insert(now_.begin(), now_.end());
  }

  std::string_view found(const std::vector<SubscriberId>& some) {
    for (const SubscriberId id : some) {
      if (!served_.insert(id).second) return "served twice";
      if (std::ranges::none_of(now_, [id](const auto& s) { return s.subscriber == id; })) {
        return "served without a subscription";
      }
    }
    return {};
  }

  std::string_view over() const {
    for (const auto& s : throughout_) {
      if (served_.contains(s.subscriber)) continue;
      if (s.group.empty()) return "subscribed throughout, and not served";
      if (!is_any_served(s)) return "nobody of a group is served";
    }
    std::set<SubscriberId> alone;
    std::set<std::pair<std::string, std::string>> groups;
    for (const auto& s : ever_) {
      if (s.group.empty()) {
        alone.insert(s.subscriber);
      } else {
        groups.emplace(s.pattern, s.group);
      }
    }
    const bool are_too_many = served_.size() > alone.size() + groups.size();
    return are_too_many ? "more than one of a group is served" : "";
  }

 private:
  using Subscription = SubscriptionsModel::Subscription;

  bool is_any_served(const Subscription& of_group) const {
    return std::ranges::any_of(ever_, [&](const Subscription& s) {
      return s.pattern == of_group.pattern && s.group == of_group.group &&
             served_.contains(s.subscriber);
    });
  }

  const SubscriptionsModel& model_;
  const std::string channel_;
  std::set<Subscription> now_;
  std::set<Subscription> throughout_;
  std::set<Subscription> ever_;
  std::set<SubscriberId> served_;
};

}  // namespace lockd
