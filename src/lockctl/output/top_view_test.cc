#include "lockctl/output/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "lockctl/api/json.h"
#include "lockctl/output/output.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> lines_of(const std::string& frame) {
  std::vector<std::string> lines;
  std::istringstream stream(frame + '\n');  // so that a last line that is empty counts
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TopPicture picture() {
  TopPicture picture{.server = "http://127.0.0.1:8080", .footer = TopControls().text()};
  Snapshot now;
  now.at = std::chrono::steady_clock::time_point(10s);
  now.view = overview_view(parse_json(
      R"({"version":"1.2","uptime_ms":90000,"ready":true,"connections":12,
          "keys":{"count":3,"idle":1,"max":1024},"locks_held":2,"lock_waiters":5,
          "totals":{"grants":1500,"renewals":3}})",
      "test"));
  now.keys.push_back(key_view(parse_json(
      R"({"kind":"lock","key":"hot\u001b[2J","limit":1,"holders":1,"waiters":5,
          "holds":[{"holder":"ana","token":7,"held_ms":10,"expires_in_ms":33000}],
          "queue":[{"holder":"bo","waited_ms":4000}]})",
      "test")));
  for (int i = 0; i < 100; ++i) now.keys.push_back({.key = "k" + std::to_string(i), .holders = 1});
  Snapshot before = now;
  before.at -= 2s;
  before.view.totals->grants = 500;
  picture.now = now;
  picture.before = before;
  return picture;
}

TEST(TopView, ShowsFiguresRatesAndKeys) {
  const std::string frame = draw(picture(), {24, 100}, Style::plain());
  for (const char* part :
       {"http://127.0.0.1:8080", "up 1m 30s", "connections 12", "keys 3 of 1,024 (1 idle)",
        "grants 500", "renewals 0.0", "ana", "33s", "4s", "q quits"}) {
    EXPECT_NE(frame.find(part), std::string::npos) << part << " is not in\n" << frame;
  }
  EXPECT_EQ(frame.find('\x1b'), std::string::npos) << "a key's name must not reach the terminal";
}

TEST(TopView, FitsEveryScreen) {
  for (std::size_t rows = 1; rows < 30; ++rows) {
    for (const std::size_t columns : {1U, 10U, 40U, 80U, 200U}) {
      const auto lines = lines_of(draw(picture(), {rows, columns}, Style::plain()));
      EXPECT_EQ(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(TopView, SaysWhatIsWrongAndKeepsWhatWasSeen) {
  TopPicture sad = picture();
  sad.trouble = "cannot connect";
  const std::string frame = draw(sad, {24, 80}, Style::plain());
  EXPECT_NE(frame.find("cannot connect"), std::string::npos);
  EXPECT_NE(frame.find("ana"), std::string::npos);
  EXPECT_NE(draw({.server = "x"}, {24, 80}, Style::plain()).find("asking"), std::string::npos);
}

std::vector<std::string> names_of(const std::vector<KeyView>& keys) {
  std::vector<std::string> names;
  for (const KeyView& key : keys) names.push_back(key.key);
  return names;
}

TEST(TopView, KeysAreChosenAndSorted) {
  const std::vector<KeyView> all{
      {.key = "b/1", .holders = 1, .waiters = 1, .holds = {{.held_for = 5s}}},
      {.key = "a/2", .holders = 1, .waiters = 3, .queue = {{.waited = 2s}}},
      {.key = "a/1", .holders = 2, .holds = {{.held_for = 1s}, {.held_for = 9s}}}};
  const auto chosen = [&](const TopChoice& choice) {
    auto keys = all;
    choose(keys, choice);
    return names_of(keys);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({}), (Names{"a/2", "b/1", "a/1"}));
  EXPECT_EQ(chosen({.order = KeyOrder::key}), (Names{"a/1", "a/2", "b/1"}));
  EXPECT_EQ(chosen({.order = KeyOrder::held}), (Names{"a/1", "b/1", "a/2"}));
  EXPECT_EQ(chosen({.order = KeyOrder::wait}), (Names{"a/2", "a/1", "b/1"}));
  EXPECT_EQ(chosen({.order = KeyOrder::key, .filter = "/1"}), (Names{"a/1", "b/1"}));
  EXPECT_EQ(chosen({.filter = "none"}), Names{});
}

void press(TopControls& controls, std::string_view keys) {
  for (const char key : keys) {
    EXPECT_NE(controls.press(key), TopControls::Answer::quit) << "by " << key << " of " << keys;
  }
}

TEST(TopView, KeysThatArePressed) {
  TopControls controls;
  press(controls, "h");
  EXPECT_EQ(controls.choice().order, KeyOrder::held);
  EXPECT_NE(controls.text().find("[h held]"), std::string::npos) << controls.text();
  press(controls, "k?");
  EXPECT_EQ(controls.choice().order, KeyOrder::key);
  press(controls, "/quéé\x7f\t");  // letters are letters while a filter is typed
  EXPECT_EQ(controls.choice().filter, "qué");
  EXPECT_NE(controls.text().find("qué_"), std::string::npos) << controls.text();
  press(controls, "\nw");
  EXPECT_EQ(controls.choice(), (TopChoice{.filter = "qué"}));
  EXPECT_NE(controls.text().find("now 'qué'"), std::string::npos) << controls.text();
  press(controls, "/\x1b");
  EXPECT_EQ(controls.choice().filter, "");
  press(controls, "/" + std::string(1000, 'x') + std::string(2000, '\b'));
  EXPECT_EQ(controls.choice().filter, "");
  press(controls, "\r");
  EXPECT_EQ(controls.press('q'), TopControls::Answer::quit);
  EXPECT_EQ(controls.press('\x04'), TopControls::Answer::quit);
}

TEST(TopView, ARestartedServerHasNoRate) {
  TopPicture restarted = picture();
  restarted.now->view.totals->grants = 3;
  EXPECT_NE(draw(restarted, {24, 100}, Style::plain()).find("grants -"), std::string::npos);
}

TEST(ServerView, ServersThatShareTheKeysAreAddedUp) {
  ServerView sum{.version = "2",
                 .uptime = 9s,
                 .ready = true,
                 .keys = 3,
                 .locks_held = 1,
                 .totals = TotalsView{.grants = 5}};
  add(sum, {.version = "2",
            .uptime = 4s,
            .ready = false,
            .draining = true,
            .keys = 4,
            .locks_held = 2,
            .totals = TotalsView{.grants = 7, .cancels = 1}});
  EXPECT_EQ(sum.version, "2");
  EXPECT_EQ(sum.uptime, 4s);
  EXPECT_EQ(sum.ready, false);
  EXPECT_TRUE(sum.draining);
  EXPECT_EQ(sum.keys, 7U);
  EXPECT_EQ(sum.locks_held, 3U);
  EXPECT_EQ(sum.totals->grants, 12U);
  EXPECT_EQ(sum.totals->cancels, 1U);
  add(sum, {.version = "3"});
  EXPECT_EQ(sum.version, "");
  EXPECT_FALSE(sum.totals.has_value());
}

TEST(KeyView, WhoHoldsItIsToldAsFarAsItIsKnown) {
  const auto key = key_view(parse_json(
      R"({"kind":"lock","key":"k","limit":1,"holders":1,"waiters":1,"holds":[{"holder":"tcp:17",
          "client":"ann@build-7:4711","peer":"10.0.0.7:51234","note":"deploy","token":7,
          "held_ms":3000}],"queue":[{"holder":"tcp:18","peer":"10.0.0.8:1","waited_ms":5}]})",
      "test"));
  EXPECT_EQ(holders_text(key),
            "held by 'tcp:17' (client 'ann@build-7:4711', peer 10.0.0.7:51234, note 'deploy') "
            "for 3s, 1 waiting");
  EXPECT_EQ(identity_text(key.queue[0].identity), "peer 10.0.0.8:1");
  KeyTable table;
  table.add(key);
  EXPECT_EQ(table.text(Style::plain()),
            "KEY  KIND  HOLDERS  WAITERS  HOLDER  CLIENT            PEER            NOTE    FENCE  "
            "HELD  EXPIRES\n"
            "k    lock        1        1  tcp:17  ann@build-7:4711  10.0.0.7:51234  deploy      7  "
            "  3s        -\n");
}

TEST(KeyView, WhatIsNotHeldAloneOrByOnePermitIsShown) {
  const auto lock = key_view(parse_json(
      R"({"kind":"lock","key":"file","limit":1,"holders":3,"waiters":2,
          "holds":[{"holder":"ana","mode":"shared","token":7,"held_ms":3000}],
          "queue":[{"holder":"bob","waited_ms":9},
                   {"holder":"cat","mode":"shared","waited_ms":5}]})",
      "test"));
  EXPECT_EQ(holders_text(lock), "shared by 'ana' and 2 more for 3s, 2 waiting");
  EXPECT_EQ(lock.queue[0].mode, Mode::exclusive);
  EXPECT_EQ(lock.queue[1].mode, Mode::shared);
  const auto pool = key_view(parse_json(
      R"({"kind":"semaphore","key":"pool","limit":8,"holders":2,"permits":5,"waiters":0,
          "holds":[{"holder":"ana","permits":4,"token":8,"held_ms":3000},
                   {"holder":"bob","token":9,"held_ms":1000}],"queue":[]})",
      "test"));
  EXPECT_EQ(holders_text(pool), "held by 'ana' with 4 permits and 1 more for 3s");
  KeyTable table;
  table.add(lock);
  table.add(pool);
  EXPECT_EQ(table.text(Style::plain()),
            "KEY   KIND       HOLDERS  WAITERS  HOLDER  SHARE      FENCE  HELD  EXPIRES\n"
            "file  lock             3        2  ana +2  shared         7    3s        -\n"
            "pool  semaphore      5/8        0  ana +1  4 permits      8    3s        -\n");
  TopPicture shown = picture();
  shown.now->keys = {lock, pool};
  const std::string frame = draw(shown, {24, 100}, Style::plain());
  EXPECT_NE(frame.find("ana shared"), std::string::npos) << frame;
  EXPECT_NE(frame.find("5/8  ana 4 permits"), std::string::npos) << frame;
}

TEST(ServerView, StatisticsOfTheLinePortAreUnderstood) {
  const auto stats = parse_json(
      R"({"connections":2,"locks":[{"key":"a","owner_conn_id":3,"lease_expires_in_s":25.4,
          "waiters":1}],"semaphores":[{"key":"s","limit":3,"holders":2,"permits":3,
          "waiters":4}],
          "idle_locks":[{"key":"old","idle_s":12.5}],"idle_semaphores":[],
          "signal_channels":[{"pattern":"a.>","listeners":2}]})",
      "test");
  const ServerView view = stats_view(stats);
  EXPECT_EQ(view.locks_held, 1U);
  EXPECT_EQ(view.lock_waiters, 1U);
  EXPECT_EQ(view.semaphore_waiters, 4U);
  EXPECT_EQ(view.keys_idle, 1U);
  EXPECT_EQ(view.listeners, 2U);
  auto keys = keys_of_stats(stats);
  choose(keys, {});
  EXPECT_EQ(json_of(keys[0]), R"({"kind":"semaphore","key":"s","limit":3,"holders":2,"permits":3,)"
                              R"("waiters":4,"holds":[],"queue":[]})");
  EXPECT_EQ(json_of(keys[1]), R"({"kind":"lock","key":"a","limit":1,"holders":1,"waiters":1,)"
                              R"("holds":[{"holder":"tcp:3","expires_in_ms":25400}],"queue":[]})");
  const auto shared = keys_of_stats(parse_json(
      R"({"locks":[{"key":"a","owner_conn_id":3,"lease_expires_in_s":25.4,"mode":"shared",
          "holders":4,"waiters":0}]})",
      "test"));
  EXPECT_EQ(holders_text(shared[0]), "shared by 'tcp:3' and 3 more");
}

}  // namespace
}  // namespace lockd::cli
