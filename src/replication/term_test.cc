#include "replication/term.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "replication/testing/model_etcd.h"
#include "replication/truncation.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class TermTest : public testing::Test {
 protected:
  TermTest() {
    etcd_.move_to(Time{1'000'000'000});
    epoch_ = etcd_.store.execute({.then = {etcd::put(keys_.leader, "it")}}).revision;
    term_ = std::make_unique<Term>(*client_, keys_,
                                   TermOptions{.detect = 1s, .rpc = 100ms, .retry = 10ms}, stats_,
                                   errors_, epoch_, BatchId{}, Position{0});
    term_->turn(etcd_.now(), nullptr);
    await([this] { return term_->has_begun(); });
    pending_ = std::make_unique<AppendBuffer>(AppendBufferOptions{}, term_->committed());
    turn();
  }

  Time turn() { return term_->turn(etcd_.now(), pending_.get()); }
  void append() {
    const Event event{.type = Event::Type::ended, .key = "k", .fence = ++fence_};
    pending_->append({&event, 1});
  }
  // Without a turn.
  template <typename Happened>
  void await(Happened happened) {
    for (int i = 0; i < 100'000 && !happened(); ++i) {
      etcd_.move_to(etcd_.now() + 10us);
      client_->deliver();
    }
    ASSERT_TRUE(happened());
  }
  void await_append() {
    await([this, before = term_->committed()] { return term_->committed() > before; });
  }

  const EtcdKeys keys_{"t"};
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  std::unique_ptr<etcd::ModelEtcd::Connection> client_ = etcd_.connect();
  ReplicationStats stats_;
  EtcdErrorLog errors_{[](Severity, std::string_view) {}};
  etcd::Revision epoch_ = 0;
  std::unique_ptr<Term> term_;
  std::unique_ptr<AppendBuffer> pending_;
  Fence fence_ = 0;
};

TEST_F(TermTest, SendsAtOnceWhatNobodyWaitsBeside) {
  for (int i = 0; i < 3; ++i) {
    append();
    turn();
    EXPECT_EQ(pending_->size(), 0u);
    EXPECT_FALSE(term_->is_idle());
    await_append();
    turn();
    EXPECT_TRUE(term_->is_idle());
  }
}

TEST_F(TermTest, WaitsForThoseWhoAreToldWhenOthersWaitAlready) {
  append();
  turn();
  append();  // while the first is on its way
  await_append();
  const Time told = etcd_.now();
  const Time next = turn();
  EXPECT_GT(pending_->size(), 0u);
  EXPECT_FALSE(term_->is_idle());
  EXPECT_GT(next, told);
  EXPECT_LE(next, told + 1ms);
  append();  // by who was told
  etcd_.move_to(next);
  turn();
  EXPECT_EQ(pending_->size(), 0u);
  await_append();
  EXPECT_EQ(term_->committed(), pending_->end());
}

// The base was moved by a leader before this one, when this one had read it already.
TEST_F(TermTest, TruncatesFromWhereverTheBaseIs) {
  const BatchId before{1, 5};
  etcd_.store.execute(
      {.then = {etcd::put(keys_.batch(before), "b"), etcd::put(keys_.base, to_text(before))}});
  Truncation truncation(*client_, keys_, {.rpc = 100ms, .retry = 10ms}, stats_, *term_, 0);
  for (int round = 0; round < 3; ++round) {
    const BatchId base = term_->next();
    truncation.begin(base);
    for (int i = 0; i < 1000 && !truncation.is_idle(); ++i) {
      truncation.turn(etcd_.now());
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
    }
    EXPECT_TRUE(truncation.is_idle());
    const auto answer = etcd_.store.execute({.then = {etcd::get(keys_.base)}});
    EXPECT_EQ(answer.found.front().front().value, to_text(base));
    EXPECT_TRUE(etcd_.store.execute({.then = {etcd::get(keys_.batch(before))}}).found[0].empty());
    append();
    turn();
    await_append();
    turn();
  }
}

}  // namespace
}  // namespace lockd
