#include "server/session/departures.h"

#include <algorithm>
#include <utility>

namespace lockd {
namespace {

// Steps: at once, which is enough for most sessions; then for each session in its turn; and for all
// sessions in one turn of the loop, some milliseconds.
constexpr int kStepsAtOnce = 64;
constexpr int kStepsEach = 256;
constexpr int kStepsPerTurn = 4096;

}  // namespace

void Departures::begin(HostedSession& hosted) {
  leaving_.push_back(&hosted);
  int budget = kStepsAtOnce;
  end(hosted, &budget);
}

void Departures::end(HostedSession& hosted, int* budget) {
  hosted.is_ending = !hosted.session->on_end(hosted.keeps_holds, budget);
  if (hosted.is_ending) {
    endings_.push_back(&hosted);
    return;
  }
  clients_.leave(hosted.id());
  for (Awaited& one : awaited_) {
    if (one.hosted == &hosted) one.hosted = nullptr;
  }
}

void Departures::end_some() {
  int budget = kStepsPerTurn;
  while (!endings_.empty() && budget > 0) {
    HostedSession* const hosted = endings_.front();
    endings_.pop_front();
    const int share = std::min(budget, kStepsEach);
    int left = share;
    end(*hosted, &left);
    budget -= std::max(share - left, 1);
  }
}

void Departures::end_all() {
  while (!endings_.empty()) end_some();
}

void Departures::await_end(HostedSession* hosted, ClientHost::OnGone on_gone) {
  const bool has_ended = hosted == nullptr || !hosted->is_ending;
  awaited_.push_back({has_ended ? nullptr : hosted, std::move(on_gone), batch_.commit()});
}

void Departures::notify_awaited(Position committed) {
  std::erase_if(awaited_, [&](Awaited& one) {
    one.depends_on = std::max(one.depends_on, committed);
    if (one.hosted != nullptr) return false;
    one.on_gone(one.depends_on);
    return true;
  });
}

void Departures::on_wait_done(const WaitResult& result) {
  const auto found = orphaned_.find(result.id);
  if (found == orphaned_.end()) return;
  if (result.outcome == Outcome::ok) batch_.withdraw(found->second.hold_of(result.grant));
  orphaned_.erase(found);
}

std::vector<HostedSession*> Departures::take_finished() {
  std::vector<HostedSession*> finished;
  std::erase_if(leaving_, [&](HostedSession* hosted) {
    if (!hosted->transport->is_idle() || hosted->is_ending) return false;
    finished.push_back(hosted);
    return true;
  });
  return finished;
}

}  // namespace lockd
