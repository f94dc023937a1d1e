// Reports that wait to be made, and in what order they are.
//
// There are two lanes, each for a thread of its own: summaries (metrics, the overview), which look
// at counters, and walks (listings, stats), which visit every key. So no summary waits for a walk.
//
// A walk is made in slices. Those that wait take turns, a slice each: no report waits for the whole
// of another. An asker that has closed its side may be gone, or may read what it is sent: nobody
// can tell. It is served after all others. Equal requests that have not begun are made once, for
// all who asked; one whose askers have all gone is dropped.
//
// Of the walks that may be refused only so many wait, and as many again whose askers may be gone.
// One more is told that it was refused.
//
// Any thread may call anything, but each lane's slices are made by one thread at a time.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/list.h"
#include "base/mutex.h"
#include "server/reports/report.h"

namespace lockd {

class ReportQueue {
 public:
  // Makes a report, or the next slice of one.
  using Make = std::function<ReportPiece(const ReportRequest&)>;
  enum class Lane : std::uint8_t { summaries, walks };
  static constexpr std::size_t kLanes = 2;

  static constexpr std::size_t kWaitingMax = 256;
  // Whoever asks for the same is told at once, and takes memory at once: they are not too many.
  static constexpr std::size_t kAskersMax = 16;

  // `wake` is called when there is something to make in a lane.
  ReportQueue(Make make, std::function<void(Lane)> wake)
      : make_(std::move(make)), wake_(std::move(wake)) {}
  ReportQueue(const ReportQueue&) = delete;
  ReportQueue& operator=(const ReportQueue&) = delete;

  // The reader is told of one piece, and has to ask for the rest of it. Precondition: `asker` waits
  // for nothing yet.
  void ask(ReportReader& reader, SessionId asker, ReportRequest request) EXCLUDES(mutex_);
  // If it waits: it may be gone; or it is gone, and is told of nothing any more.
  void may_be_gone(SessionId asker) EXCLUDES(mutex_);
  void cancel(SessionId asker) EXCLUDES(mutex_);

  // Makes a slice, and tells those who asked when it has come to something. False when nothing
  // waits in the lane.
  bool make_some(Lane lane) EXCLUDES(mutex_);

 private:
  struct Asker {
    ReportReader* reader;
    SessionId id;
    bool refusable;
    bool may_be_gone;
  };

  struct Report;
  struct Waiting;

  // Its askers, and where it waits, are guarded by the mutex. The request belongs to the thread
  // that makes it from its first slice on.
  struct Report {
    Lane lane;
    ReportRequest request;
    std::vector<Asker> askers{};
    Waiting* waiting = nullptr;  // null: a slice of it is being made
    bool has_begun = false;
    ListHook<Report> turns{};
  };
  struct Waiting {
    List<Report, &Report::turns> reports;
  };
  using ReportPtr = std::shared_ptr<Report>;

  ReportPtr find_equal(Lane lane, const ReportRequest& request) REQUIRES(mutex_);
  void enqueue(Report& report) REQUIRES(mutex_);
  void dequeue(Report& report) REQUIRES(mutex_);
  std::optional<Asker> remove(SessionId asker) REQUIRES(mutex_);
  std::size_t& count_of(const Asker& asker) REQUIRES(mutex_);
  bool is_one_too_many(const Asker& asker) REQUIRES(mutex_);
  ReportPtr begin_slice(Lane lane) EXCLUDES(mutex_);
  std::vector<Asker> end_slice(Report& report, const ReportPiece& piece) EXCLUDES(mutex_);

  const Make make_;
  const std::function<void(Lane)> wake_;

  Mutex mutex_;
  boost::unordered_flat_map<SessionId, ReportPtr> by_asker_ GUARDED_BY(mutex_);
  struct LaneState {
    Waiting first;                 // somebody is there who asked
    Waiting last;                  // nobody may be
    std::vector<Report*> unbegun;  // those that others may join
  };
  std::array<LaneState, kLanes> lanes_ GUARDED_BY(mutex_);
  std::array<std::size_t, 2> refusable_ GUARDED_BY(mutex_){};  // askers: there; may be gone
};

}  // namespace lockd
