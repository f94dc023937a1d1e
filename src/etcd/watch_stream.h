// A watch of etcd's, as gRPC drives it: one request, and then responses, one at a time.
//
// Its owner's thread makes it, starts it, takes what has come and lets it go; gRPC's threads say
// what has come. It goes by itself when its owner has let it go and gRPC is done with it.
#pragma once

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <utility>

namespace lockd {

class WatchStream final
    : public grpc::ClientBidiReactor<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse> {
 public:
  using Request = etcdserverpb::WatchRequest;
  using Response = etcdserverpb::WatchResponse;
  // On a thread of gRPC's: there is a response, or none will come any more.
  using Came = std::function<void(bool is_response)>;
  // Likewise, last of all: the stream is no more, and nobody has any use for its context.
  using Gone = std::function<void(grpc::ClientContext* context)>;

  WatchStream(Request request, Came came, Gone gone)
      : request_(std::move(request)), came_(std::move(came)), gone_(std::move(gone)) {}

  void start(etcdserverpb::Watch::Stub& stub, std::size_t endpoint) {
    started_ = true;
    endpoint_ = endpoint;
    context.AddMetadata("hasleader", "true");
    stub.async()->Watch(&context, this);
    StartWrite(&request_);
    StartRead(&response_);
    AddHold();
    StartCall();
  }
  // Once, and last.
  void let_go() {
    if (!started_) {
      delete this;
      return;
    }
    context.TryCancel();
    RemoveHold();
  }
  // The last response was taken: on to the next.
  void go_on() {
    response_.Clear();
    StartRead(&response_);
  }
  const Response& response() const { return response_; }
  std::size_t endpoint() const { return endpoint_; }

  grpc::ClientContext context;

 private:
  void OnReadDone(bool ok) override { came_(ok); }
  void OnDone(const grpc::Status&) override {
    const Gone gone = std::move(gone_);
    grpc::ClientContext* const closed = &context;
    delete this;
    gone(closed);
  }

  const Request request_;
  const Came came_;
  Gone gone_;
  Response response_;
  std::size_t endpoint_ = 0;
  bool started_ = false;
};

}  // namespace lockd
