// The members of an etcd cluster: which of them is asked next, and with what token.
//
// The thread of the client that asks, and no other. Nothing waits.
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
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };

  explicit GrpcEndpoints(const GrpcEtcdOptions& options);

  // The first that is connected, from the cursor on; else the one at the cursor. Those that are not
  // are asked to be.
  Endpoint& choose();
  std::size_t cursor() const { return cursor_; }
  std::vector<Endpoint>& all() { return endpoints_; }

  // It says nothing of what was asked: the token was too old.
  bool refuses_token(const grpc::Status& status) const;
  // What was asked of it came to this.
  void failed(std::size_t endpoint, const grpc::Status& status);
  // From now on another comes first.
  void pass_over(std::size_t endpoint);
  // From now on this one does.
  void prefer(std::size_t endpoint) { cursor_ = endpoint; }

  // A user has to have one, and has none yet.
  bool lacks_token() const { return !options_.user.empty() && token_.empty(); }
  // None is to be had, for a moment: the last that was asked for was refused.
  bool is_refused_token() const { return std::chrono::steady_clock::now() < fetch_again_at_; }
  const std::string& why_no_token() const { return why_no_token_; }
  etcdserverpb::AuthenticateRequest token_request() const;
  void take_token(const grpc::Status& status, const etcdserverpb::AuthenticateResponse& response);
  // If a user needs one.
  void add_token(grpc::ClientContext& context) const;

 private:
  const GrpcEtcdOptions options_;
  std::vector<Endpoint> endpoints_;
  std::size_t cursor_ = 0;
  std::string token_;
  std::string why_no_token_;
  std::chrono::steady_clock::time_point fetch_again_at_{};
};

}  // namespace lockd
