// A server that a history is recorded of, through all its lives; or a cluster, whose nodes have
// lives of their own.
//
// Somebody ends it and starts it again, on one thread; everybody may ask where it is.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "lockd/engine.h"
#include "support/live_faults.h"
#include "support/server_process.h"

namespace lockd {
class Server;
}

namespace lockd::histories {

class ServerUnderTest {
 public:
  struct Place {
    std::uint16_t line_port = 0;
    std::uint16_t http_port = 0;
    std::uint32_t life = 0;
  };
  struct Settings {
    std::string name;
    std::uint16_t number = 0;  // of History::servers
    bool tls = false;
    bool auto_release = true;
    std::string directory;
  };

  explicit ServerUnderTest(Settings settings, std::size_t nodes = 1)
      : settings_(std::move(settings)), nodes_(nodes) {}
  virtual ~ServerUnderTest() = default;

  const Settings& settings() const { return settings_; }
  std::size_t nodes() const { return nodes_.size(); }
  Place place(std::size_t node = 0) const;
  // Whether that life was, or is being, ended from outside: what its clients held lives on.
  bool is_ending(std::uint32_t life, std::size_t node = 0) const;

  // Of a cluster: who leads, as far as is known.
  virtual std::size_t leader() { return 0; }

  // These throw std::runtime_error when that does not come about.
  virtual void start() = 0;
  // It comes to its end by itself, and in good order.
  virtual void stop() = 0;

 protected:
  // What a server as a process is told, whatever it is the subject of.
  std::vector<std::string> common_flags() const;
  // Before anything is done that ends it; or, when it is asked to end, while it still serves HTTP.
  void goes_down(std::size_t node = 0);
  void begins_to_end(std::size_t node = 0);
  void came_up(std::uint16_t line_port, std::uint16_t http_port, std::size_t node = 0);

 private:
  struct Node {
    Place place;
    std::uint32_t ended = 0;  // the last life that was
  };

  const Settings settings_;
  mutable std::mutex mutex_;
  std::vector<Node> nodes_;
};

// lockd in a process of its own.
class ProcessUnderTest : public ServerUnderTest {
 public:
  explicit ProcessUnderTest(Settings settings);

  void start() override;
  void stop() override;
  // The same in two parts: in between it serves those who hold.
  void ask_to_stop();
  void await_end();
  void kill();
  // Before its storage is made to fail; and then: waits for it to end by itself, with a failure.
  void is_about_to_fail() { goes_down(); }
  void await_failure();
  void freeze();
  void thaw();
  // It gets no descriptors but those that it has; and as many as before.
  void withhold_descriptors();
  void grant_descriptors();

  LiveFaults& faults() { return *faults_; }
  bool has_faults() const;
  // From the next start on it is another boot of the machine.
  void reboot();

 private:
  std::vector<std::string> flags() const;
  [[noreturn]] void fail(const std::string& what);

  LiveFaults* const faults_;
  unsigned boots_ = 0;
  rlimit descriptors_{};
  std::optional<ServerProcess> process_;
};

// The server in this process, with callers beside its clients.
class HostUnderTest : public ServerUnderTest {
 public:
  explicit HostUnderTest(Settings settings);
  ~HostUnderTest() override;

  void start() override;
  void stop() override;

  // The engine, for as long as this lives; none while there is none.
  class Visit {
   public:
    explicit Visit(HostUnderTest& subject);
    Engine* engine();
    std::uint32_t life() const { return server_.place().life; }

   private:
    std::shared_lock<std::shared_mutex> lock_;
    HostUnderTest& server_;
  };

 private:
  std::atomic<bool> closed_to_visits_{false};  // else they would never all be gone
  std::shared_mutex server_mutex_;
  std::unique_ptr<Server> server_;
};

}  // namespace lockd::histories
