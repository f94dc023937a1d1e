// In what order reports are made, for whom, and for whom no more.
#include "server/reports/report_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockd {
namespace {

using Lane = ReportQueue::Lane;
using Texts = std::vector<std::string>;

// A listing is named by its prefix, and takes as many slices as the prefix is long.
class ReportQueueTest : public testing::Test, protected ReportReader {
 protected:
  static ReportRequest listing(std::string prefix) {
    ReportRequest request{.what = ReportRequest::What::keys, .keys = {}, .refusable = true};
    request.keys.prefix = std::move(prefix);
    return request;
  }
  static ReportRequest stats() { return {.what = ReportRequest::What::stats, .keys = {}}; }
  static ReportRequest metrics() { return {.what = ReportRequest::What::metrics, .keys = {}}; }

  void ask(SessionId id, ReportRequest request) { queue_.ask(*this, id, std::move(request)); }
  // What is made, slice by slice.
  Texts make_all(Lane lane = Lane::walks) {
    made_.clear();
    while (queue_.make_some(lane)) continue;
    return made_;
  }

  struct Sliced final : ReportRest, std::enable_shared_from_this<Sliced> {
    Sliced(ReportQueueTest& test, std::string name) : test(test), name(std::move(name)) {}
    ReportPiece next() override {
      test.made_.push_back(name);
      if (++slices < name.size()) return {"", 0, shared_from_this()};
      return {name, 0};
    }
    ReportQueueTest& test;
    const std::string name;
    std::size_t slices = 0;
  };

  ReportPiece make(const ReportRequest& request) {
    if (in_mid_slice) std::exchange(in_mid_slice, nullptr)();
    if (request.rest != nullptr) return request.rest->next();
    std::string name = request.keys.prefix;
    if (request.what == ReportRequest::What::metrics) name = "m";
    if (request.what == ReportRequest::What::stats) name = "s";
    return std::make_shared<Sliced>(*this, name)->next();
  }
  void deliver_report(SessionId asker, std::shared_ptr<const ReportPiece> piece) override {
    EXPECT_FALSE(heard_.contains(asker));
    heard_[asker] = piece->was_refused ? "refused" : piece->text;
  }

  std::function<void()> in_mid_slice;
  Texts made_;
  std::map<SessionId, std::string> heard_;
  int woken_ = 0;
  ReportQueue queue_{[this](const ReportRequest& request) { return make(request); },
                     [this](Lane) { ++woken_; }};
};

TEST_F(ReportQueueTest, ThoseThatWaitTakeTurns) {
  ask(1, listing("aaa"));
  ask(2, listing("b"));
  ask(3, listing("cc"));
  EXPECT_EQ(make_all(), (Texts{"aaa", "b", "cc", "aaa", "cc", "aaa"}));
  EXPECT_EQ(heard_[1], "aaa");
  EXPECT_EQ(heard_[2], "b");
  EXPECT_EQ(heard_[3], "cc");
  EXPECT_EQ(woken_, 3);
}

TEST_F(ReportQueueTest, SummariesHaveALaneOfTheirOwn) {
  ask(1, listing("aaa"));
  ask(2, metrics());
  EXPECT_EQ(make_all(Lane::summaries), (Texts{"m"}));
  EXPECT_EQ(heard_.size(), 1U);
  EXPECT_EQ(make_all(Lane::walks).size(), 3U);
}

TEST_F(ReportQueueTest, EqualOnesThatHaveNotBegunAreMadeOnce) {
  for (SessionId id = 1; id <= 3; ++id) ask(id, listing("aa"));
  ask(4, listing("bb"));
  ask(5, stats());
  ask(6, stats());
  EXPECT_TRUE(queue_.make_some(Lane::walks));
  ask(7, listing("aa"));  // the others have begun
  EXPECT_EQ(make_all(), (Texts{"bb", "s", "s", "aa", "aa", "bb", "aa"}));
  EXPECT_EQ(heard_.size(), 7U);
}

TEST_F(ReportQueueTest, OneReportHasOnlySoManyAskers) {
  for (SessionId id = 0; id < 2 * ReportQueue::kAskersMax + 1; ++id) ask(id, metrics());
  EXPECT_EQ(make_all(Lane::summaries), (Texts{"m", "m", "m"}));
  EXPECT_EQ(heard_.size(), 2 * ReportQueue::kAskersMax + 1);
}

TEST_F(ReportQueueTest, WhatNobodyAsksForAnyMoreIsNotMade) {
  ask(1, listing("aa"));
  ask(2, listing("aa"));
  ask(3, listing("bb"));
  queue_.cancel(3);
  queue_.cancel(1);
  queue_.cancel(1);
  EXPECT_EQ(make_all(), (Texts{"aa", "aa"}));
  EXPECT_EQ(heard_, (std::map<SessionId, std::string>{{2, "aa"}}));
  ask(4, listing("bb"));
  EXPECT_EQ(make_all(), (Texts{"bb", "bb"}));
}

TEST_F(ReportQueueTest, WhoLeavesInMidSliceIsNotTold) {
  ask(1, listing("aaa"));
  in_mid_slice = [this] { queue_.cancel(1); };
  EXPECT_EQ(make_all(), (Texts{"aaa"}));
  ask(1, listing("b"));
  in_mid_slice = [this] { queue_.cancel(1); };
  EXPECT_EQ(make_all(), (Texts{"b"}));
  EXPECT_TRUE(heard_.empty());
}

TEST_F(ReportQueueTest, WhoMayBeGoneIsServedAfterAllOthers) {
  ask(1, listing("aa"));
  ask(2, listing("bb"));
  ask(3, listing("cc"));
  queue_.may_be_gone(1);
  queue_.make_some(Lane::walks);
  in_mid_slice = [this] { queue_.may_be_gone(3); };
  EXPECT_EQ(make_all(), (Texts{"cc", "bb", "aa", "cc", "aa"}));
  EXPECT_EQ(heard_.size(), 3U);
  ReportRequest half_closed = listing("d");
  half_closed.may_be_gone = true;
  ask(4, half_closed);
  ask(5, listing("ee"));
  EXPECT_EQ(make_all(), (Texts{"ee", "ee", "d"}));
}

TEST_F(ReportQueueTest, SomebodyWhoIsThereIsEnough) {
  ask(1, listing("aa"));
  queue_.may_be_gone(1);
  ask(2, listing("bb"));
  ask(3, listing("aa"));
  EXPECT_EQ(make_all(), (Texts{"bb", "aa", "bb", "aa"}));
  ask(4, listing("cc"));
  ask(5, listing("cc"));
  ask(6, listing("dd"));
  queue_.may_be_gone(4);
  queue_.cancel(5);
  EXPECT_EQ(make_all(), (Texts{"dd", "dd", "cc", "cc"}));
}

TEST_F(ReportQueueTest, OneTooManyIsRefused) {
  const SessionId max = ReportQueue::kWaitingMax;
  for (SessionId id = 1; id <= max; ++id) ask(id, listing("a" + std::to_string(id)));
  EXPECT_TRUE(heard_.empty());
  ask(max + 1, listing("b"));
  EXPECT_EQ(heard_[max + 1], "refused");
  ask(max + 2, stats());  // of the line protocol: it has no answer for that
  ask(max + 3, metrics());
  EXPECT_EQ(heard_.size(), 1U);
  queue_.cancel(7);
  ask(max + 4, listing("c"));
  EXPECT_EQ(heard_.size(), 1U);
  make_all();
  EXPECT_EQ(heard_[max + 4], "c");
  for (SessionId id = 1; id <= max; ++id) heard_.erase(id);
  for (SessionId id = 1; id <= max; ++id) ask(id, listing("a"));
  EXPECT_FALSE(heard_.contains(max)) << "those that were made wait no more";
}

// Whoever has closed its side does not keep those out who are there.
TEST_F(ReportQueueTest, ThoseWhoMayBeGoneAreCountedApart) {
  const SessionId max = ReportQueue::kWaitingMax;
  for (SessionId id = 1; id <= 2 * max; ++id) {
    ask(id, listing("a" + std::to_string(id)));
    queue_.may_be_gone(id);
    queue_.may_be_gone(id);
  }
  EXPECT_EQ(heard_.size(), max);
  EXPECT_EQ(heard_[2 * max], "refused");
  ask(2 * max + 1, listing("b"));
  EXPECT_EQ(heard_.size(), max);
  queue_.make_some(Lane::walks);
  EXPECT_EQ(heard_[2 * max + 1], "b");
}

}  // namespace
}  // namespace lockd
