// etcd over the network, by gRPC.
//
// One channel to each endpoint. A call goes to the member that leads etcd, once that is known:
// every other would pass it on to it. One that is not connected, or has not answered in time, is
// passed over from then on, so a member that is frozen costs one deadline. A watch asks its member
// to end it when that has lost its leader, or it would stay open and silent.
//
// run() does gRPC's work as well as it calls back, on the thread of whoever calls it: nobody else
// waits for what etcd answers, and nobody has to be woken for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/journal_error.h"
#include "replication/etcd_client.h"

namespace lockd {

struct GrpcEtcdOptions {
  std::vector<std::string> endpoints;  // host:port
  // TLS, if there is a CA; as files' contents.
  std::string ca{};
  std::string certificate{};
  std::string key{};
  // A user with a password; a certificate's name needs none.
  std::string user{};
  std::string password{};
};

class GrpcEtcd final : public etcd::Client {
 public:
  explicit GrpcEtcd(const GrpcEtcdOptions& options);
  ~GrpcEtcd() override;

  void switch_member() override;
  void execute(const etcd::Txn& txn, Duration within, Done done) override;
  void compact(etcd::Revision revision, Duration within, Done done) override;
  void measure(Duration within, Measured measured) override;
  void watch(const std::string& key, const std::string& range_end, etcd::Revision from,
             etcd::Watcher& watcher) override;
  void unwatch() override;

  // Calls back what has come; waits for something, but no longer than this, and not if woken.
  void run(Duration longest);
  // Any thread.
  void wake();
  // What is asked from now on is asked over new channels. Any thread.
  void renew(const GrpcEtcdOptions& options);

 private:
  class Impl;

  const std::unique_ptr<Impl> impl_;
};

// What gRPC says by itself, such as that a certificate is not accepted, goes to `log` from now on:
// its errors, each at most once a minute; the rest is dropped. gRPC knows why, where a call knows
// only that no answer came. For the whole process; `log` is called on any thread.
void take_grpc_log(Log log);

}  // namespace lockd
