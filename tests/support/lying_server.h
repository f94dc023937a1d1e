// A server that does what a test tells it to: a script for each connection, on a thread of its own.
//
//   const LyingServer server([](Peer& peer) {
//     while (auto asked = peer.read_request()) peer.send(asked->command == "ping" ? "ok\n" : "e");
//   });
//
// Who the client is it is told before the script begins, and answers `ok`; unless the script is to
// hear of it. At the end of its scope every connection is cut, and the scripts have ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/testing/eventually.h"
#include "lockd/client/address.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/connection.h"

namespace lockd::client {

struct Asked {
  std::string command;
  std::string key;
  std::string argument;      // without the word behind it
  std::string secret;        // that word, if it is "as=..."
  BootClock::time_point at;  // when its last byte was read
};

// One client, as the script sees it. The connection ends when the script returns.
class Peer {
 public:
  Peer(int socket, int number) : socket_(socket), number_(number) {}
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { close(); }

  // Connections are counted from 0.
  int number() const { return number_; }

  // Nothing once the client is gone.
  std::optional<Asked> read_request();
  // False once the client is gone.
  bool send(std::string_view bytes);
  bool send_bytewise(std::string_view bytes);
  // Says nothing until the client is gone.
  void stay_silent();
  // At the end: RST instead of FIN.
  void end_by_reset();
  // Now.
  void cut() const;

 private:
  friend class LyingServer;

  std::optional<std::string> read_line();
  void answer_introduction();
  void close();

  int socket_;
  const int number_;
  std::string unread_;
};

class LyingServer {
 public:
  using Script = std::function<void(Peer&)>;

  enum class Hears : unsigned char { requests, all };

  // Port 0 picks a free one.
  explicit LyingServer(Script script, std::uint16_t port = 0, Hears hears = Hears::requests);
  LyingServer(Script script, Hears hears) : LyingServer(std::move(script), 0, hears) {}
  ~LyingServer();
  LyingServer(const LyingServer&) = delete;
  LyingServer& operator=(const LyingServer&) = delete;

  Address address() const { return {"127.0.0.1", port_}; }
  int connections() const { return connections_; }

 private:
  struct Guest {
    Guest(int socket, int number) : peer(socket, number) {}
    Peer peer;
    std::thread thread;
  };

  void accept_all();

  const Script script_;
  const Hears hears_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;  // a guest's socket is closed under it, and cut by others
  std::list<Guest> guests_;
  std::thread thread_;
};

// Patient enough for a slow machine, where the server does answer.
ConnectOptions patient();
// Fails the test when it cannot.
Connection connect(const LyingServer& server, const ConnectOptions& options = patient());

}  // namespace lockd::client
