// The servers of one cluster, of which one leads at a time: where each is, and who led last.
//
// A server that stands alone is a cluster of one. Who the members are never changes, and nobody
// else is ever asked, whatever a member says. What is learned about them (who leads, which
// addresses are behind a name) is shared by all calls and renewals of a client, so that the first
// to find a new leader finds it for all. Any thread may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/endpoint.h"
#include "client/line_connection.h"
#include "lockd/client/address.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class Cluster : public std::enable_shared_from_this<Cluster> {
 public:
  // `invalid` when there are none or more than kClusterSizeMax, when one is given twice, or when
  // the options cannot be used.
  static Result<std::shared_ptr<Cluster>> make(std::span<const Address> addresses,
                                               const ConnectOptions& options);

  bool is_alone() const { return members_.size() == 1; }
  std::size_t size() const { return members_.size(); }
  const std::shared_ptr<const Endpoint>& member(std::size_t index) const { return members_[index]; }
  const ConnectOptions& options() const { return members_.front()->options; }
  // The member that was given by this address.
  std::optional<std::size_t> find(const Address& address) const;
  // Precondition: a connection with one of them.
  std::size_t index_of(const LineConnection& connection) const;
  // "a:6388, b:6388"
  std::string names() const;

  // Who was last known to lead; at first the first.
  std::size_t leader() const { return leader_; }
  void set_leader(std::size_t index) { leader_ = index; }

  // What is behind a member's name, as it was last looked up. Nothing before that.
  std::optional<SocketAddresses> addresses_of(std::size_t index) const EXCLUDES(mutex_);
  void learn(std::size_t index, SocketAddresses addresses) EXCLUDES(mutex_);
  // Looks a member up, or again, without waiting for the answer: for those who must not wait.
  void look_up(std::size_t index) EXCLUDES(mutex_);

 private:
  struct Whereabouts {
    std::optional<SocketAddresses> addresses{};
    bool is_looked_up = false;  // now
  };

  void end_look_up(std::size_t index, Result<SocketAddresses> answer) EXCLUDES(mutex_);

  std::vector<std::shared_ptr<const Endpoint>> members_;  // constant once it is made
  std::atomic<std::size_t> leader_ = 0;
  mutable Mutex mutex_;
  std::vector<Whereabouts> whereabouts_ GUARDED_BY(mutex_);  // of each member
};

}  // namespace lockd::client
