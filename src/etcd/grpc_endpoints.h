// The members of an etcd cluster: which of them is asked next, and with what token.
//
// The thread of the client that asks, and no other.
#pragma once

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "etcd/grpc_etcd.h"

namespace lockd {

class GrpcEndpoints {
 public:
  struct Endpoint {
    std::string name;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;
  };

  explicit GrpcEndpoints(const GrpcEtcdOptions& options);

  // The first that is connected, from the cursor on; else the one at the cursor. Those that are not
  // are asked to be.
  Endpoint& choose();
  std::size_t cursor() const { return cursor_; }
  std::vector<Endpoint>& all() { return endpoints_; }

  // What was asked of it came to this.
  void failed(std::size_t endpoint, const grpc::Status& status);
  // From now on another comes first.
  void pass_over(std::size_t endpoint);
  // From now on this one does.
  void prefer(std::size_t endpoint) { cursor_ = endpoint; }

  // Adds the token that a user needs. Waits for etcd, for a moment, when there is none yet. False
  // if there is none to be had.
  bool authenticate(grpc::ClientContext& context);
  const std::string& why_no_token() const { return why_no_token_; }

 private:
  bool fetch_token();

  const GrpcEtcdOptions options_;
  std::vector<Endpoint> endpoints_;
  std::size_t cursor_ = 0;
  std::string token_;
  std::string why_no_token_;
  std::chrono::steady_clock::time_point fetch_again_at_{};
};

}  // namespace lockd
