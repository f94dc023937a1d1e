// The threads that make reports, away from the loops: one for each lane of a ReportQueue.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "server/reports/report_queue.h"

namespace lockd {

class ReportThreads {
 public:
  explicit ReportThreads(ReportQueue::Make make)
      : queue_(std::move(make), [this](ReportQueue::Lane lane) { wake(lane); }) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i] = std::thread([this, i] { run(static_cast<ReportQueue::Lane>(i)); });
    }
  }
  ~ReportThreads() { join(); }

  ReportQueue& queue() { return queue_; }

  // Nothing is made after it, whoever asks: those who asked must have gone, or do not mind.
  void join() {
    stops_ = true;
    for (std::size_t i = 0; i < threads_.size(); ++i) wake(static_cast<ReportQueue::Lane>(i));
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void wake(ReportQueue::Lane lane) {
    std::atomic<std::uint32_t>& calls = calls_[static_cast<std::size_t>(lane)];
    ++calls;
    calls.notify_one();
  }

  // Calls are read before the queue is: one that comes in between is not slept through.
  void run(ReportQueue::Lane lane) {
    const std::atomic<std::uint32_t>& calls = calls_[static_cast<std::size_t>(lane)];
    while (!stops_) {
      const std::uint32_t seen = calls;
      if (!queue_.make_some(lane) && !stops_) calls.wait(seen);
    }
  }

  ReportQueue queue_;
  std::atomic<bool> stops_{false};
  std::array<std::atomic<std::uint32_t>, ReportQueue::kLanes> calls_{};
  std::array<std::thread, ReportQueue::kLanes> threads_;
};

}  // namespace lockd
