// etcd, as processes of their own on loopback, each of which can be killed, stopped and started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "journal/temporary_directory.h"

namespace lockd::ha_test {

class EtcdCluster {
 public:
  explicit EtcdCluster(std::size_t members);
  ~EtcdCluster();
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  // Where clients connect: host:port of each.
  std::vector<std::string> endpoints() const;

  void kill(std::size_t member);   // -9; it is gone on return
  void start(std::size_t member);  // with what it has on its disk
  void stop(std::size_t member);   // it stands still
  void go_on(std::size_t member);

 private:
  struct Member {
    std::uint16_t client_port = 0;
    std::uint16_t peer_port = 0;
    pid_t pid = 0;
  };

  std::string initial_cluster() const;

  TemporaryDirectory directory_;
  std::vector<Member> members_;
};

}  // namespace lockd::ha_test
