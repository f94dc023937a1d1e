// Calls of the API: the same parameters as a query and as an object; what refusals mean.
#include "lockctl/api/api.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/api/json.h"

namespace lockd::cli {
namespace {

TEST(ApiParameters, AreAQueryOrAnObject) {
  const Parameters parameters{{"prefix", "a/ \"é"}, {"limit", std::uint64_t{10}}, {"idle", true}};
  EXPECT_EQ(query_of(parameters), "?prefix=a%2F%20%22%C3%A9&limit=10&idle=true");
  EXPECT_EQ(object_of(parameters), R"({"prefix":"a/ \"é","limit":10,"idle":true})");
  EXPECT_EQ(query_of({}), "");
  EXPECT_EQ(object_of({}), "{}");
}

TEST(ApiRefusal, SaysWhoHoldsIt) {
  EXPECT_EQ(refusal_of({409, R"({"error":"held","detail":"it is held","held_by":{)"
                             R"("holder":"tcp:17","client":"ann@build-7:4711",)"
                             R"("peer":"10.0.0.7:51234","note":"deploy"}})"})
                .line,
            "it is held (holder 'tcp:17', client 'ann@build-7:4711', peer 10.0.0.7:51234, "
            "note 'deploy')");
  EXPECT_EQ(refusal_of({409, R"({"error":"held","detail":"d","held_by":{"holder":"bo"}})"}).line,
            "d (holder 'bo')");
  EXPECT_EQ(refusal_of({500, "no json"}).line, "the server answers with HTTP status 500");
  EXPECT_EQ(refusal_of({403, R"({"error":"denied","detail":"needs admin"})"}).code,
            kExitNoPermission);
}

// Answers from a script, and keeps what it was asked.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::deque<ApiReply> replies) : replies_(std::move(replies)) {}

  ApiReply get(const std::string& path, const Parameters& parameters) override {
    asked.push_back(path + query_of(parameters));
    ApiReply reply = replies_.front();
    replies_.pop_front();
    return reply;
  }
  ApiReply post(const std::string&, const Parameters&, Duration) override { return {}; }
  ApiReply follow(const std::string&, const Parameters&, const Sink&) override { return {}; }
  void interrupt() override {}
  std::string server() const override { return "a script"; }

  std::vector<std::string> asked;

 private:
  std::deque<ApiReply> replies_;
};

std::string names_listed(Api& api, std::uint64_t wanted) {
  std::string names;
  for_each_listed(
      api, "/v1/list", {{"prefix", "p"}}, "names", [&] { return wanted - names.size(); },
      [&](const boost::json::value& one) { names += text_of(one, "name"); });
  return names;
}

TEST(ApiPages, FollowOneAnotherUntilTheLast) {
  ScriptedApi api({{200, R"({"names":[{"name":"a"},{"name":"b"}],"next":"2"})"},
                   {200, R"({"names":[{"name":"c"}]})"}});
  EXPECT_EQ(names_listed(api, 3000), "abc");
  EXPECT_EQ(api.asked, (std::vector<std::string>{"/v1/list?prefix=p&limit=1000",
                                                 "/v1/list?prefix=p&limit=1000&after=2"}));
}

TEST(ApiPages, AreNoMoreThanAreWanted) {
  ScriptedApi api({{200, R"({"names":[{"name":"a"},{"name":"b"}],"next":"2"})"}});
  EXPECT_EQ(names_listed(api, 2), "ab");
  EXPECT_EQ(api.asked, std::vector<std::string>{"/v1/list?prefix=p&limit=2"});
}

TEST(ApiPages, AreSmallerWhereAnAnswerWouldBeTooLong) {
  ScriptedApi api({{413, R"({"error":"too_large","detail":"ask for a page"})"},
                   {200, R"({"names":[{"name":"a"}],"next":"1"})"},
                   {200, R"({"names":[{"name":"b"}]})"}});
  EXPECT_EQ(names_listed(api, 3000), "ab");
  EXPECT_EQ(api.asked[1], "/v1/list?prefix=p&limit=500");
  EXPECT_EQ(api.asked[2], "/v1/list?prefix=p&limit=500&after=1");
}

TEST(ApiPages, ARefusalIsAFailure) {
  ScriptedApi api({{401, R"({"error":"unauthorized"})"}});
  EXPECT_THROW(names_listed(api, 10), Failure);
}

}  // namespace
}  // namespace lockd::cli
