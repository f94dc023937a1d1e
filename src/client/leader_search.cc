#include "client/leader_search.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "client/reply.h"
#include "client/stoppable_wait.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

struct Pauses {
  Duration min;
  Duration max;
};

// A server that stands alone is waited for; of a cluster's another will soon lead.
constexpr Pauses kAlone{50ms, 1s};
constexpr Pauses kAmongOthers{10ms, 200ms};

// Whether it may pass by itself.
bool is_passing(Outcome outcome) {
  return outcome == Outcome::not_leader || outcome == Outcome::draining ||
         outcome == Outcome::unreachable || outcome == Outcome::disconnected ||
         outcome == Outcome::no_reply;
}

// How much it tells those who are told one failure only: that nobody could be asked, that nobody
// leads, or what has to be fixed.
int weight(Outcome outcome) {
  if (!is_passing(outcome)) return 2;
  return outcome == Outcome::not_leader || outcome == Outcome::draining ? 1 : 0;
}

}  // namespace

bool moves_on(Outcome outcome) noexcept {
  return is_passing(outcome) || outcome == Outcome::untrusted || outcome == Outcome::unauthorized ||
         outcome == Outcome::garbled;
}

LeaderSearch::LeaderSearch(const std::shared_ptr<Cluster>& cluster)
    : LeaderSearch(cluster, cluster->leader()) {}

LeaderSearch::LeaderSearch(std::shared_ptr<Cluster> cluster, std::size_t begin)
    : cluster_(std::move(cluster)), here_(begin), tried_(cluster_->size()) {}

void LeaderSearch::move_on(const Status& why, Time now) {
  tried_[here_] = true;
  has_hope_ = has_hope_ || is_passing(why.outcome);
  if (!failure_ || weight(why.outcome) >= weight(failure_->outcome)) failure_ = why;
  if (std::find(tried_.begin(), tried_.end(), false) == tried_.end()) begin_round(now);
  here_ = choose(why);
}

void LeaderSearch::begin_round(Time now) {
  const auto& [min, max] = cluster_->is_alone() ? kAlone : kAmongOthers;
  tried_.assign(tried_.size(), false);
  is_hopeless_ = !std::exchange(has_hope_, false);
  not_before_ = later(now, pause_);
  pause_ = std::clamp(2 * pause_, min, max);
}

std::size_t LeaderSearch::choose(const Status& why) {
  if (!why.leader.empty()) {
    const auto address = Address::parse(why.leader);
    const auto named = address ? cluster_->find(*address) : std::nullopt;
    if (!named) stranger_ = why.leader;
    if (named && !tried_[*named]) return *named;
  }
  if (const std::size_t known = cluster_->leader(); known != here_ && !tried_[known]) return known;
  std::size_t next = here_;
  do {
    next = (next + 1) % tried_.size();
  } while (tried_[next]);
  return next;
}

void LeaderSearch::found(std::size_t leader) {
  cluster_->set_leader(leader);
  here_ = leader;
  tried_.assign(tried_.size(), false);
  not_before_ = {};
  pause_ = {};
  has_hope_ = is_hopeless_ = false;
  failure_.reset();
  stranger_.clear();
}

Status LeaderSearch::verdict() const {
  Status verdict = *failure_;
  verdict.detail = "no leader was found among " + cluster_->names() + ": " + describe(*failure_);
  if (!stranger_.empty()) {
    verdict.detail += "; " + shown(stranger_) + " was named, and was not given";
  }
  return verdict;
}

}  // namespace lockd::client
