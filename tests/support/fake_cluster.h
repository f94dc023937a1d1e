// Three servers, or another number, that play a cluster: one leads, the others say who does, and
// what is held is held at the next leader too. Tests kill, hang and lie.
//
//   FakeCluster cluster(3);
//   Client client({.cluster = cluster.addresses()});
//   cluster.kill(0);
//   cluster.lead(1);
//
// A leader that lives releases what was granted on a connection that ends, as the real one does.
// At the end of its scope all connections are cut, and nothing runs any more.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockd/client/address.h"
#include "support/lying_server.h"

namespace lockd::client {

class FakeCluster {
 public:
  // What a server says instead of what it should; nothing: what it should. "cut": it hangs up.
  using Lie = std::function<std::optional<std::string>(std::size_t server, const Asked&)>;

  // The first leads.
  explicit FakeCluster(std::size_t size, Lie lie = {});
  ~FakeCluster();
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;

  const std::vector<Address>& addresses() const { return addresses_; }

  // From now on this one leads; nobody.
  void lead(std::size_t server);
  void lead_none();
  // Its connections are cut, and new ones refused.
  void kill(std::size_t server);
  // It accepts and reads, and answers when it goes on.
  void hang(std::size_t server);
  void go_on(std::size_t server);
  // What others say of who leads; empty: the truth.
  void name(std::string leader);

  bool is_held(const std::string& key) const;
  // How often a server was asked for this, by the first word of the request.
  int asked(std::size_t server, const std::string& command) const;
  int waiting() const;  // in the queue

 private:
  struct Server {
    std::unique_ptr<LyingServer> server{};
    bool is_dead = false;
    bool hangs = false;
    std::map<std::string, int> asked{};
  };

  void serve(std::size_t index, Peer& peer);
  // Nothing: hang up.
  std::optional<std::string> answer(std::size_t index, const Asked& asked,
                                    std::vector<std::string>& granted);
  std::optional<std::string> acquire(std::unique_lock<std::mutex>& lock, std::size_t index,
                                     const Asked& asked, std::vector<std::string>& granted);
  std::string grant(const Asked& asked, std::vector<std::string>& granted);
  bool leads(std::size_t index) const { return leader_ == index; }

  const Lie lie_;
  std::vector<Address> addresses_;  // constant once it is made
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex.
  std::vector<Server> servers_;
  std::optional<std::size_t> leader_ = 0;
  std::string named_;
  std::map<std::string, std::string> holds_;  // tokens by key
  int waiting_ = 0;
  int grants_ = 0;
};

}  // namespace lockd::client
