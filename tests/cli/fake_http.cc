#include "cli/fake_http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "support/loopback.h"

namespace lockd {
namespace {

constexpr const char* kHeadEnd = "\r\n\r\n";

std::size_t body_size(const std::string& head) {
  const std::size_t at = head.find("Content-Length: ");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

// All of one request; nothing when the peer goes away before.
FakeRequest receive(int socket) {
  std::string text;
  std::size_t head = std::string::npos;
  std::array<char, 4096> bytes;
  while (head == std::string::npos || text.size() < head + 4 + body_size(text.substr(0, head))) {
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (size <= 0) return {};
    text.append(bytes.data(), static_cast<std::size_t>(size));
    head = text.find(kHeadEnd);
  }
  const std::size_t line = text.find("\r\n");
  return {text.substr(0, line), text.substr(line + 2, head - line), text.substr(head + 4)};
}

}  // namespace

FakeHttp::FakeHttp(Answer answer)
    : answer_(std::move(answer)), listener_(listen_on_loopback()), port_(port_of(listener_)) {
  thread_ = std::thread([this] { serve(); });
}

FakeHttp::~FakeHttp() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::vector<FakeRequest> FakeHttp::requests() {
  const std::lock_guard guard(mutex_);
  return requests_;
}

void FakeHttp::serve() {
  for (int socket; (socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    answer(socket);
    ::close(socket);
  }
}

void FakeHttp::answer(int socket) {
  const FakeRequest request = receive(socket);
  if (request.line.empty()) return;
  {
    const std::lock_guard guard(mutex_);
    requests_.push_back(request);
  }
  const std::string reply = answer_(request);
  ::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL);
}

std::string json_reply(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace lockd
