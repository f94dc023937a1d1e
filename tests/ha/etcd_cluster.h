// etcd, as processes of their own on loopback, each of which can be killed, stopped and started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "journal/testing/temporary_directory.h"

namespace lockd::ha_test {

class EtcdCluster {
 public:
  // `quota`: how large the database of a member may be, in bytes; 0: etcd's default.
  explicit EtcdCluster(std::size_t members, std::uint64_t quota = 0);
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  // Where clients connect: host:port of each.
  std::vector<std::string> endpoints() const;
  std::size_t size() const { return members_.size(); }
  std::uint16_t port(std::size_t member) const { return members_[member].client_port; }

  void kill(std::size_t member);  // -9; it is gone on return
  // With what it has on its disk; and with another quota, if there is one.
  void start(std::size_t member) { start(member, quota_); }
  void start(std::size_t member, std::uint64_t quota);
  void stop(std::size_t member);  // it stands still
  void go_on(std::size_t member);

  // What etcdctl says to that, its complaints as well; `input` is a file.
  std::string control(const std::string& words, const std::string& input = "/dev/null") const;
  // Of all keys, now; 0 when etcd does not tell.
  std::uint64_t revision() const;
  // Waits until the member takes part; false if it does not within a minute.
  bool await_healthy(std::size_t member) const;

 private:
  struct Member {
    std::uint16_t client_port = 0;
    std::uint16_t peer_port = 0;
    pid_t pid = 0;
  };

  std::string initial_cluster() const;

  const std::uint64_t quota_;
  TemporaryDirectory directory_;
  std::vector<Member> members_;
};

}  // namespace lockd::ha_test
