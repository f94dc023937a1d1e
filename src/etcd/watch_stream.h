// A watch of etcd's, as gRPC's queue drives it: one request, and then responses, one at a time.
//
// The thread that takes from the queue makes it, starts it, takes what has come and lets it go. It
// goes by itself when its owner has let it go and gRPC is done with it.
#pragma once

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace lockd {

// What gRPC's queue gives back when something is done.
class GrpcTag {
 public:
  virtual void complete(bool ok) = 0;

 protected:
  ~GrpcTag() = default;
};

class WatchStream final : public GrpcTag {
 public:
  using Request = etcdserverpb::WatchRequest;
  using Response = etcdserverpb::WatchResponse;
  // There is a response, or none will come any more.
  using Came = std::function<void(bool is_response)>;
  // Last of all: nobody has any use for its context.
  using Gone = std::function<void(grpc::ClientContext* context)>;

  WatchStream(Request request, Came came, Gone gone)
      : request_(std::move(request)), came_(std::move(came)), gone_(std::move(gone)) {}

  void start(etcdserverpb::Watch::Stub& stub, std::size_t endpoint, grpc::CompletionQueue& queue) {
    endpoint_ = endpoint;
    context.AddMetadata("hasleader", "true");
    stream_ = stub.PrepareAsyncWatch(&context, &queue);
    expect(Stage::starts);
    stream_->StartCall(tag());
  }
  // Once, and last.
  void let_go() {
    let_go_ = true;
    if (stage_ == Stage::none) {
      delete this;
      return;
    }
    context.TryCancel();
    if (!is_busy_) finish();
  }
  // The last response was taken: on to the next.
  void go_on() {
    response_.Clear();
    expect(Stage::reads);
    stream_->Read(&response_, tag());
  }
  const Response& response() const { return response_; }
  std::size_t endpoint() const { return endpoint_; }

  // One thing is under way at a time, and this is the end of it.
  void complete(bool ok) override {
    is_busy_ = false;
    if (stage_ == Stage::finishes) return end();
    if (let_go_ || !ok) return finish();
    if (stage_ == Stage::starts) {
      expect(Stage::writes);
      stream_->Write(request_, tag());
    } else if (stage_ == Stage::writes) {
      go_on();
    } else {
      came_(true);
    }
  }

  grpc::ClientContext context;

 private:
  enum class Stage : std::uint8_t { none, starts, writes, reads, finishes, over };

  ~WatchStream() = default;

  void* tag() { return static_cast<GrpcTag*>(this); }
  void expect(Stage stage) {
    stage_ = stage;
    is_busy_ = true;
  }
  void finish() {
    if (stage_ == Stage::over) {
      delete this;
      return;
    }
    expect(Stage::finishes);
    stream_->Finish(&status_, tag());
  }
  // Its owner may have to let it go yet.
  void end() {
    stage_ = Stage::over;
    gone_(&context);
    if (let_go_) {
      delete this;
      return;
    }
    const Came came = came_;  // when it returns, this is gone
    came(false);
  }

  const Request request_;
  const Came came_;
  const Gone gone_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  grpc::Status status_;
  Response response_;
  std::size_t endpoint_ = 0;
  Stage stage_ = Stage::none;
  bool is_busy_ = false;
  bool let_go_ = false;
};

}  // namespace lockd
