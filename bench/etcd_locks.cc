#include "etcd_locks.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "etcd_lock.pb.h"

namespace lockd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kGrantLease = "/etcdserverpb.Lease/LeaseGrant";
constexpr const char* kLock = "/v3lockpb.Lock/Lock";
constexpr const char* kUnlock = "/v3lockpb.Lock/Unlock";
constexpr std::int64_t kLeaseSeconds = 600;

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw std::runtime_error("etcd: " + what + ": " + why);
}

std::shared_ptr<grpc::Channel> connect_to(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

template <typename Message>
grpc::ByteBuffer to_bytes(const Message& message) {
  const std::string text = message.SerializeAsString();
  const grpc::Slice slice(text);
  return {&slice, 1};
}

template <typename Message>
Message from_bytes(grpc::ByteBuffer& bytes) {
  Message message;
  const grpc::Status status = grpc::SerializationTraits<Message>::Deserialize(&bytes, &message);
  if (!status.ok()) fail("an answer", status.error_message());
  return message;
}

// One connection: its lease, its lock, and the one call that is under way.
class Client {
 public:
  Client(const std::string& endpoint, std::string name, grpc::CompletionQueue& queue)
      : queue_(queue), stub_(connect_to(endpoint)), name_(std::move(name)) {}

  enum class Step { leases, locks, unlocks };
  Step step() const { return step_; }
  Clock::time_point sent() const { return sent_; }

  void send() {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_wait_for_ready(true);
    sent_ = Clock::now();
    call_ = stub_.PrepareUnaryCall(context_.get(), method(), request(), &queue_);
    call_->StartCall();
    call_->Finish(&answer_, &status_, this);
  }

  // What was asked has been answered: the next step is due.
  void take() {
    if (!status_.ok()) fail(method(), status_.error_message());
    switch (step_) {
      case Step::leases: lease_ = from_bytes<etcd_lock::LeaseGrantResponse>(answer_).id(); break;
      case Step::locks: key_ = from_bytes<etcd_lock::LockResponse>(answer_).key(); break;
      case Step::unlocks: break;
    }
    if (step_ == Step::locks && key_.empty()) fail("a lock", "was not granted");
    step_ = step_ == Step::locks ? Step::unlocks : Step::locks;
  }

 private:
  const char* method() const {
    switch (step_) {
      case Step::leases: return kGrantLease;
      case Step::locks: return kLock;
      case Step::unlocks: return kUnlock;
    }
    return "";
  }

  grpc::ByteBuffer request() const {
    switch (step_) {
      case Step::leases: {
        etcd_lock::LeaseGrantRequest request;
        request.set_ttl(kLeaseSeconds);
        return to_bytes(request);
      }
      case Step::locks: {
        etcd_lock::LockRequest request;
        request.set_name(name_);
        request.set_lease(lease_);
        return to_bytes(request);
      }
      case Step::unlocks: {
        etcd_lock::UnlockRequest request;
        request.set_key(key_);
        return to_bytes(request);
      }
    }
    return {};
  }

  grpc::CompletionQueue& queue_;
  grpc::GenericStub stub_;
  const std::string name_;
  std::int64_t lease_ = 0;
  std::string key_;
  Step step_ = Step::leases;
  Clock::time_point sent_{};
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
};

Client& await_answer(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok)) fail("the queue", "has ended");
  Client& client = *static_cast<Client*>(tag);
  client.take();
  return client;
}

}  // namespace

LoadResult run_etcd_locks(const std::vector<std::string>& endpoints, int connections,
                          LoadTimes times) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < connections; ++i) {
    const std::string& endpoint = endpoints[static_cast<std::size_t>(i) % endpoints.size()];
    clients.push_back(std::make_unique<Client>(endpoint, "bench/" + std::to_string(i), queue));
    clients.back()->send();
  }
  for (int i = 0; i < connections; ++i) await_answer(queue);  // all have their leases

  LoadResult result;
  const Clock::time_point begin = Clock::now() + times.warm_up;
  const Clock::time_point end = begin + times.measured;
  for (const auto& client : clients) client->send();
  for (int under_way = connections; under_way > 0;) {
    Client& client = await_answer(queue);
    const Clock::time_point now = Clock::now();
    if (now >= begin && now < end) {
      ++result.requests;
      result.latencies.record(now - client.sent());
    }
    // Nothing is left locked behind: the next run has the same names.
    if (now < end || client.step() == Client::Step::unlocks) {
      client.send();
    } else {
      --under_way;
    }
  }
  result.elapsed = times.measured;
  return result;
}

}  // namespace lockd::bench
