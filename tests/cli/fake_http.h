// A server that answers over HTTP what a test wants it to.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockd {

struct FakeRequest {
  std::string line;     // "GET /v1/locks?prefix= HTTP/1.1"
  std::string headers;  // as they came
  std::string body;
};

class FakeHttp {
 public:
  // Answers with all bytes of a reply, after which the connection is closed. Called by one thread.
  using Answer = std::function<std::string(const FakeRequest& request)>;

  explicit FakeHttp(Answer answer);
  ~FakeHttp();
  FakeHttp(const FakeHttp&) = delete;
  FakeHttp& operator=(const FakeHttp&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<FakeRequest> requests();

 private:
  void serve();
  void answer(int socket);

  const Answer answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<FakeRequest> requests_;  // guarded by the mutex
  std::thread thread_;
};

// A reply with a body of JSON.
std::string json_reply(const std::string& status, const std::string& body);

}  // namespace lockd
