// A server whose API replies from a test's script, over HTTP and over the line port.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "cli/fake_http.h"
#include "cli/lockctl.h"
#include "support/lying_server.h"

namespace lockd {

class FakeApi {
 public:
  struct Answer {
    std::string status;  // "200 OK"
    std::string json;
  };
  // `call` is a method and a path, without its query.
  using Script = std::function<Answer(const std::string& call)>;

  explicit FakeApi(Script script)
      : script_(std::move(script)),
        http_([this](const FakeRequest& request) { return answer_http(request); }),
        line_([this](client::Peer& peer) { answer_line(peer); }) {}

  Words over_http(const Words& words) const {
    return with_options(words, {"--http", http_.address()});
  }
  Words over_line(const Words& words) const {
    return with_options(words, {"-s", line_.address().to_string()});
  }
  // "POST /v1/admin/release {...}", whichever port it came by; of a GET the query is left out.
  Words calls() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }

 private:
  Answer answer(const std::string& call, const std::string& body) {
    const std::lock_guard guard(mutex_);
    calls_.push_back(call.starts_with("POST") ? call + ' ' + body : call);
    return script_(call);
  }
  std::string answer_http(const FakeRequest& request) {
    const std::string call = request.line.substr(0, request.line.find_first_of("? ", 5));
    const Answer answered = answer(call, request.body);
    return json_reply(answered.status, answered.json);
  }
  void answer_line(client::Peer& peer) {
    while (const auto asked = peer.read_request()) {
      if (asked->command != "api") return;
      const Answer answered = answer(asked->key, asked->argument);
      peer.send("ok " + answered.status.substr(0, 3) + ' ' + answered.json + '\n');
    }
  }

  const Script script_;
  mutable std::mutex mutex_;
  Words calls_;  // guarded by the mutex
  FakeHttp http_;
  client::LyingServer line_;
};

// Runs the command over each port, and fails the test when the results differ.
inline Finished over_both(FakeApi& api, const Words& words) {
  const Finished line = lockctl(api.over_line(words));
  const Finished http = lockctl(api.over_http(words));
  EXPECT_EQ(line.status, http.status) << line.errors << http.errors;
  EXPECT_EQ(line.output, http.output);
  EXPECT_EQ(line.errors, http.errors);
  return line;
}

}  // namespace lockd
