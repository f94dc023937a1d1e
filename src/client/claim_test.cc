#include "client/claim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const SetClaim> claim_of(const LockRequest& request,
                                         const ConnectOptions& options = {.name = "me",
                                                                          .note = ""}) {
  auto made = SetClaim::make(request, options);
  EXPECT_TRUE(made) << describe(made);
  return made.value;
}

// The holder's name is random: it is masked.
std::string masked_holder(std::string lines) {
  const std::size_t hash = lines.find('#');
  return hash == std::string::npos ? lines : lines.replace(hash, 17, "#");
}

TEST(SetClaim, SaysWhatItWants) {
  const auto plain = claim_of({.keys = std::vector<KeyItem>{"a", "\"b\""}, .lease = 9s});
  EXPECT_EQ(masked_holder(plain->acquire_lines(1500ms)),
            "api\nPOST /v1/acquire\n"
            R"({"keys":["a","\"b\""],"holder":"me#","ttl_ms":9000,"wait_ms":1500})"
            "\n");
  EXPECT_EQ(masked_holder(claim_of({.keys = std::vector<KeyItem>{"a"}})->acquire_lines(0s)),
            "api\nPOST /v1/acquire\n"
            R"({"keys":["a"],"holder":"me#"})"
            "\n");
  const std::vector<KeyItem> items{"a", shared("b"), semaphore("c", 8, 4), semaphore("a", 2)};
  const auto mixed = claim_of({.keys = items});
  EXPECT_EQ(masked_holder(mixed->acquire_lines(0s)),
            "api\nPOST /v1/acquire\n"
            R"({"items":[{"key":"a","kind":"lock"},{"key":"b","kind":"lock","mode":"shared"},)"
            R"({"key":"c","kind":"semaphore","limit":8,"permits":4},)"
            R"({"key":"a","kind":"semaphore","limit":2}],"holder":"me#"})"
            "\n");
  const LineGrant grant{.fence = 7, .lease = 9s};
  EXPECT_EQ(masked_holder(plain->renew_lines(grant)),
            "api\nPOST /v1/renew\n"
            R"({"keys":["a","\"b\""],"holder":"me#","token":7,"ttl_ms":9000})"
            "\n");
  EXPECT_EQ(masked_holder(plain->release_lines(grant)),
            "api\nPOST /v1/release\n"
            R"({"keys":["a","\"b\""],"holder":"me#","token":7})"
            "\n");
}

TEST(SetClaim, NamesAWaitThatIsNeverShorterAndNeverTooLong) {
  const auto claim = claim_of({.keys = std::vector<KeyItem>{"a"}});
  EXPECT_NE(claim->acquire_lines(1ns).find(R"("wait_ms":1})"), std::string::npos);
  EXPECT_NE(claim->acquire_lines(kDurationMax).find(R"("wait_ms":9223372036000})"),
            std::string::npos);
}

TEST(SetClaim, HasAHolderOfItsOwn) {
  const auto holder_of = [](const ConnectOptions& options) {
    const std::string lines =
        claim_of({.keys = std::vector<KeyItem>{"a"}}, options)->acquire_lines(0s);
    const std::size_t start = lines.find("\"holder\":\"") + 10;
    return lines.substr(start, lines.find('"', start) - start);
  };
  EXPECT_NE(holder_of({.name = "me"}), holder_of({.name = "me"}));
  std::string longest;
  for (int i = 0; i < 128; ++i) longest += "é";
  const std::string cut = holder_of({.name = longest});
  EXPECT_TRUE(is_name(cut)) << cut;
  EXPECT_EQ(cut.size(), 238U + 17U) << "119 letters of two bytes, and what makes it unique";
  EXPECT_TRUE(holder_of({.name = ""}).starts_with('#'));
  EXPECT_NE(claim_of({.keys = std::vector<KeyItem>{"a"}}, {.name = "me", .note = "why"})
                ->acquire_lines(0s)
                .find(R"("note":"why")"),
            std::string::npos);
}

TEST(SetClaim, ThatNoServerTakesIsInvalid) {
  std::vector<KeyItem> many;
  std::vector<std::string> names;
  for (int i = 0; i < 65; ++i) names.push_back(std::to_string(i));
  for (const std::string& name : names) many.emplace_back(name);
  const std::vector<std::vector<KeyItem>> bad{
      {},
      many,
      {"a", "b", "a"},
      {"a", ""},
      {"a", "b\n"},
      {semaphore("a", 4, 5)},
      {semaphore("a", 0)},
      {{"a", Kind::lock, Mode::exclusive, 1, 2}},
      {{"a", Kind::semaphore, Mode::shared, 2}},
  };
  for (const std::vector<KeyItem>& keys : bad) {
    EXPECT_EQ(SetClaim::make({.keys = keys}, {}).outcome, Outcome::invalid);
  }
  EXPECT_EQ(SetClaim::make({.keys = "a", .lease = 0s}, {}).outcome, Outcome::invalid);
  EXPECT_EQ(SetClaim::make({.keys = bad[2]}, {}).detail, "a is in the set twice");
  many.pop_back();
  EXPECT_TRUE(SetClaim::make({.keys = many}, {}));
}

TEST(SetClaim, ReadsGrants) {
  const auto claim = claim_of({.keys = std::vector<KeyItem>{"a", "b"}, .lease = 9s});
  const auto grant = claim->grant_of(R"(ok 200 {"keys":["a","b"],"token":26,"ttl_ms":5999})");
  ASSERT_TRUE(grant) << describe(grant);
  EXPECT_EQ(grant->fence, 26U);
  EXPECT_EQ(grant->lease, 5s) << "never longer than it was granted for";
  EXPECT_EQ(grant->token, "000000000000001a");
  EXPECT_EQ(claim->grant_of(R"(ok 200 {"token":1,"ttl_ms":60000})")->lease, 9s)
      << "nor than it was asked for";
  EXPECT_EQ(claim->renewal_of(R"(ok 200 {"token":1,"ttl_ms":60000})", 4s)->remaining, 4s);
  for (const char* line :
       {"ok", "ok 200", "ok 200 {", "ok 200 []", R"(ok 200 {"token":1})", "ok x {}", "nonsense",
        R"(ok 200 {"token":0,"ttl_ms":5000})", R"(ok 200 {"token":1,"ttl_ms":999})", "ok 409 {}"}) {
    EXPECT_EQ(claim->grant_of(line).outcome, Outcome::garbled) << line;
  }
}

TEST(SetClaim, ReadsRefusals) {
  const std::vector<std::pair<std::string, Outcome>> answers{
      {"429 max_locks", Outcome::max_locks},
      {"429 max_waiters", Outcome::max_waiters},
      {"429 max_holds", Outcome::max_holds},
      {"503 storage", Outcome::storage},
      {"503 draining", Outcome::draining},
      {"503 not_leader", Outcome::not_leader},
      {"403 denied", Outcome::denied},
      {"401 unauthorized", Outcome::unauthorized},
      {"400 bad_request", Outcome::unsupported},
      {"409 held", Outcome::timeout},
      {"409 wait_timeout", Outcome::timeout},
      {"409 expired", Outcome::refused},
      {"409 stale_token", Outcome::refused},
      {"409 not_holder", Outcome::refused},
      {"409 limit_mismatch", Outcome::limit_mismatch}};
  for (const auto& [said, outcome] : answers) {
    const std::string line =
        "ok " + said.substr(0, 3) + R"( {"error":")" + said.substr(4) + R"(","detail":"because"})";
    EXPECT_EQ(api_status_of(line).outcome, outcome) << line;
  }
  EXPECT_EQ(api_status_of(R"(ok 503 {"error":"storage","detail":"it is full"})").detail,
            "it is full");
  EXPECT_EQ(api_status_of("error").outcome, Outcome::unsupported);
  EXPECT_EQ(api_status_of("error_draining").outcome, Outcome::draining);
}

TEST(SetClaim, SaysWhatIsInTheWay) {
  EXPECT_EQ(api_status_of(R"(ok 409 {"error":"held","detail":"it is held","conflicts":)"
                          R"([{"key":"b","kind":"lock","held_by":{"holder":"ana"},"waiters":0}]})")
                .detail,
            "b is held by ana");
  EXPECT_EQ(api_status_of(R"(ok 409 {"error":"held","conflicts":)"
                          R"([{"key":"a","waiters":1},{"key":"b","held_by":{"holder":"x"}}]})")
                .detail,
            "a is waited for, b is held by x");
}

TEST(SetClaim, SaysWhatIsGone) {
  const auto claim = claim_of({.keys = std::vector<KeyItem>{"a", "b"}});
  EXPECT_EQ(claim->gone_in(R"(ok 409 {"error":"expired","key":"b"})"), "b");
  EXPECT_EQ(claim->gone_in(R"(ok 200 {"released":["a"],"not_held":["b"]})"), "b");
  EXPECT_EQ(claim->gone_in(R"(ok 200 {"released":[],"not_held":[{"key":"b","kind":"lock"}]})"),
            "b");
  EXPECT_EQ(claim->gone_in("error"), "a, b");
  EXPECT_EQ(api_status_of(R"(ok 200 {"released":["a"],"not_held":["b"]})").outcome,
            Outcome::refused);
  EXPECT_TRUE(api_status_of(R"(ok 200 {"released":["a","b"],"not_held":[]})"));
}

}  // namespace
}  // namespace lockd::client
