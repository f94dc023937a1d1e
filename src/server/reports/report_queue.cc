#include "server/reports/report_queue.h"

#include <algorithm>
#include <utility>

namespace lockd {
namespace {

using Lane = ReportQueue::Lane;
using What = ReportRequest::What;

Lane lane_of(const ReportRequest& request) {
  const bool is_summary = request.what == What::metrics || request.what == What::overview;
  return is_summary && request.rest == nullptr ? Lane::summaries : Lane::walks;
}

// Stats come piece by piece, as fast as their reader takes them: each has its own.
bool may_be_shared(const ReportRequest& request) {
  return request.what != What::stats && request.rest == nullptr;
}

// Walked some, and has nothing to tell yet.
bool is_pause(const ReportPiece& piece) { return piece.text.empty() && piece.rest != nullptr; }

}  // namespace

// Askers come and go.

void ReportQueue::ask(ReportReader& reader, SessionId id, ReportRequest request) {
  const Lane lane = lane_of(request);
  const Asker asker{&reader, id, request.refusable, request.may_be_gone};
  bool refused = false;
  {
    MutexLock lock(mutex_);
    refused = is_one_too_many(asker);
    if (!refused) {
      ReportPtr report = find_equal(lane, request);
      if (report == nullptr) {
        report = std::make_shared<Report>(Report{.lane = lane, .request = std::move(request)});
        if (may_be_shared(report->request)) {
          lanes_[static_cast<std::size_t>(lane)].unbegun.push_back(report.get());
        }
      }
      report->askers.push_back(asker);
      if (asker.refusable) ++count_of(asker);
      enqueue(*report);
      by_asker_[id] = std::move(report);
    }
  }
  if (refused) return reader.deliver_report(id, refused_report());
  wake_(lane);
}

void ReportQueue::may_be_gone(SessionId id) {
  std::optional<Asker> refused;
  {
    MutexLock lock(mutex_);
    const auto found = by_asker_.find(id);
    if (found == by_asker_.end()) return;
    Report& report = *found->second;
    const auto asker = std::find_if(report.askers.begin(), report.askers.end(),
                                    [id](const Asker& a) { return a.id == id; });
    if (asker->may_be_gone) return;
    if (asker->refusable) --count_of(*asker);
    asker->may_be_gone = true;
    const bool is_too_many = is_one_too_many(*asker);
    if (asker->refusable) ++count_of(*asker);
    if (is_too_many) {
      refused = remove(id);
    } else if (report.waiting != nullptr) {
      enqueue(report);
    }
  }
  if (refused) refused->reader->deliver_report(id, refused_report());
}

void ReportQueue::cancel(SessionId id) {
  MutexLock lock(mutex_);
  remove(id);
}

std::optional<ReportQueue::Asker> ReportQueue::remove(SessionId id) {
  const auto found = by_asker_.find(id);
  if (found == by_asker_.end()) return {};
  const ReportPtr report = std::move(found->second);
  by_asker_.erase(found);
  auto& askers = report->askers;
  const auto at =
      std::find_if(askers.begin(), askers.end(), [id](const Asker& a) { return a.id == id; });
  const Asker removed = *at;
  askers.erase(at);
  if (removed.refusable) --count_of(removed);
  if (report->waiting == nullptr) return removed;
  askers.empty() ? dequeue(*report) : enqueue(*report);
  return removed;
}

std::size_t& ReportQueue::count_of(const Asker& asker) {
  return refusable_[asker.may_be_gone ? 1 : 0];
}

bool ReportQueue::is_one_too_many(const Asker& asker) {
  return asker.refusable && count_of(asker) >= kWaitingMax;
}

// Reports wait for their turns.

// The latest, as those before it have as many askers as they may.
ReportQueue::ReportPtr ReportQueue::find_equal(Lane lane, const ReportRequest& request) {
  if (!may_be_shared(request)) return nullptr;
  const auto& unbegun = lanes_[static_cast<std::size_t>(lane)].unbegun;
  const auto found = std::find_if(unbegun.rbegin(), unbegun.rend(), [&](const Report* report) {
    return report->request.what == request.what && report->request.keys == request.keys &&
           report->request.clients == request.clients &&
           report->request.history == request.history &&
           report->request.confined_to == request.confined_to;
  });
  if (found == unbegun.rend() || (*found)->askers.size() >= kAskersMax) return nullptr;
  return by_asker_.at((*found)->askers.front().id);
}

// Behind those that wait; one that waits where it should keeps its place.
void ReportQueue::enqueue(Report& report) {
  LaneState& lane = lanes_[static_cast<std::size_t>(report.lane)];
  const bool is_last = std::all_of(report.askers.begin(), report.askers.end(),
                                   [](const Asker& asker) { return asker.may_be_gone; });
  Waiting* const waiting = is_last ? &lane.last : &lane.first;
  if (report.waiting == waiting) return;
  if (report.waiting != nullptr) report.waiting->reports.remove(&report);
  report.waiting = waiting;
  waiting->reports.push_back(&report);
}

void ReportQueue::dequeue(Report& report) {
  report.waiting->reports.remove(&report);
  report.waiting = nullptr;
  if (report.has_begun) return;
  std::erase(lanes_[static_cast<std::size_t>(report.lane)].unbegun, &report);
}

// Slices.

bool ReportQueue::make_some(Lane lane) {
  const ReportPtr report = begin_slice(lane);
  if (report == nullptr) return false;
  const auto piece = std::make_shared<const ReportPiece>(make_(report->request));
  for (const Asker& asker : end_slice(*report, *piece)) {
    asker.reader->deliver_report(asker.id, piece);
  }
  return true;
}

ReportQueue::ReportPtr ReportQueue::begin_slice(Lane which) {
  MutexLock lock(mutex_);
  LaneState& lane = lanes_[static_cast<std::size_t>(which)];
  Report* next = lane.first.reports.front();
  if (next == nullptr) next = lane.last.reports.front();
  if (next == nullptr) return nullptr;
  dequeue(*next);
  next->has_begun = true;
  return by_asker_.at(next->askers.front().id);
}

// Those who are to be told of it: none when it is a pause.
std::vector<ReportQueue::Asker> ReportQueue::end_slice(Report& report, const ReportPiece& piece) {
  MutexLock lock(mutex_);
  if (report.askers.empty()) return {};
  if (is_pause(piece)) {
    report.request.rest = piece.rest;
    enqueue(report);
    return {};
  }
  std::vector<Asker> askers = std::move(report.askers);
  for (const Asker& asker : askers) {
    by_asker_.erase(asker.id);
    if (asker.refusable) --count_of(asker);
  }
  return askers;
}

}  // namespace lockd
