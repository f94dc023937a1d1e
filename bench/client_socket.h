// A client's socket to a server on this machine. Blocks; throws std::runtime_error when the server
// is not there, or no longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockd::bench {

class ClientSocket {
 public:
  explicit ClientSocket(std::uint16_t port);  // of 127.0.0.1
  ~ClientSocket();
  ClientSocket(ClientSocket&& other) noexcept;
  ClientSocket& operator=(ClientSocket&&) = delete;

  int descriptor() const { return descriptor_; }

  void send(std::string_view bytes);
  // What has come: one read into `buffer`.
  std::string_view receive(std::span<char> buffer);
  // Asks, and returns the line that comes in reply, without its end. Nothing else is under way.
  std::string ask(std::string_view request);

 private:
  int descriptor_;
};

// Whether anybody listens there.
bool is_served(std::uint16_t port);
}  // namespace lockd::bench
