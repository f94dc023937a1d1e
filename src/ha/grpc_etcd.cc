#include "ha/grpc_etcd.h"

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "ha/etcd_messages.h"

namespace lockd {
namespace {

namespace pb = etcdserverpb;
using etcd::Answer;
using Done = etcd::Client::Done;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr milliseconds kAuthenticateMax{500};

std::shared_ptr<grpc::ChannelCredentials> credentials(const GrpcEtcdOptions& options) {
  if (options.ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.ca;
  ssl.pem_cert_chain = options.certificate;
  ssl.pem_private_key = options.key;
  return grpc::SslCredentials(ssl);
}

std::shared_ptr<grpc::Channel> connect(const std::string& endpoint,
                                       const GrpcEtcdOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // also how long connecting may take
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);  // etcd refuses less than 5 s
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(endpoint, credentials(options), arguments);
}

}  // namespace

class GrpcEtcd::Body {
 public:
  explicit Body(const GrpcEtcdOptions& options) : options_(options) {
    for (const std::string& endpoint : options.endpoints) {
      Endpoint& made = endpoints_.emplace_back();
      made.channel = connect(endpoint, options);
      made.kv = pb::KV::NewStub(made.channel);
      made.watch = pb::Watch::NewStub(made.channel);
      made.channel->GetState(true);
    }
  }

  // gRPC's threads are done with this when nothing is open any more.
  ~Body() {
    unwatch();
    MutexLock lock(mutex_);
    for (grpc::ClientContext* context : open_) context->TryCancel();
    while (!open_.empty()) changed_.wait(mutex_);
  }

  void execute(const etcd::Txn& txn, Duration within, Done done) {
    const auto call = std::make_shared<Call<pb::TxnRequest, pb::TxnResponse>>(*this);
    call->request = etcd::to_message(txn);
    call->done = std::move(done);
    if (!open(call, within)) return;
    endpoint().kv->async()->Txn(
        &call->context, &call->request, &call->response,
        [call](const grpc::Status& status) { Body::answered(call, status); });
  }

  void compact(etcd::Revision revision, Duration within, Done done) {
    const auto call = std::make_shared<Call<pb::CompactionRequest, pb::CompactionResponse>>(*this);
    call->request.set_revision(revision);
    call->done = std::move(done);
    if (!open(call, within)) return;
    endpoint().kv->async()->Compact(
        &call->context, &call->request, &call->response,
        [call](const grpc::Status& status) { Body::answered(call, status); });
  }

  void watch(const std::string& key, const std::string& range_end, etcd::Revision from,
             etcd::Watcher& watcher) {
    unwatch();
    watcher_ = &watcher;
    pb::WatchRequest request;
    pb::WatchCreateRequest* const create = request.mutable_create_request();
    create->set_key(key);
    create->set_range_end(range_end);
    create->set_start_revision(from);
    create->set_fragment(true);
    stream_ = new Stream(*this, ++watch_number_, std::move(request));
    if (!authenticate(stream_->context)) return leave([this, n = watch_number_] { broken(n); });
    stream_->start(*endpoint().watch);
  }

  // What it still sends is nobody's.
  void unwatch() {
    ++watch_number_;
    watcher_ = nullptr;
    if (stream_ != nullptr) std::exchange(stream_, nullptr)->let_go();
  }

  void run(Duration longest) {
    std::deque<Task> tasks;
    {
      MutexLock lock(mutex_);
      if (tasks_.empty() && !woken_ && longest > Duration::zero()) {
        changed_.wait_for(mutex_, longest);
      }
      woken_ = false;
      tasks.swap(tasks_);
    }
    for (const Task& task : tasks) task();
  }

  void wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

 private:
  using Task = std::function<void()>;

  struct Endpoint {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<pb::KV::Stub> kv;
    std::unique_ptr<pb::Watch::Stub> watch;
  };

  template <typename Request, typename Response>
  struct Call {
    explicit Call(Body& body) : body(body) {}

    void finish(const grpc::Status& status) {
      if (!status.ok()) body.failed(endpoint, status);
      done(status.ok() ? answer_of(response) : etcd::to_answer(status));
    }

    Body& body;
    Request request;
    Response response;
    grpc::ClientContext context;
    Done done;
    std::size_t endpoint = 0;
  };

  // On a thread of gRPC's.
  template <typename AnyCall>
  static void answered(const std::shared_ptr<AnyCall>& call, const grpc::Status& status) {
    call->body.leave([call, status] { call->finish(status); }, &call->context);
  }

  // Goes by itself when the body has let it go and gRPC is done with it.
  class Stream final : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse> {
   public:
    Stream(Body& body, std::uint64_t number, pb::WatchRequest request)
        : body_(body), number_(number), request_(std::move(request)) {}

    void start(pb::Watch::Stub& stub) {
      started_ = true;
      context.AddMetadata("hasleader", "true");
      endpoint_ = body_.cursor_;
      body_.opened(&context);
      stub.async()->Watch(&context, this);
      StartWrite(&request_);
      StartRead(&response_);
      AddHold();
      StartCall();
    }
    // On the body's thread, once.
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
    pb::WatchResponse& response() { return response_; }
    std::size_t endpoint() const { return endpoint_; }

    grpc::ClientContext context;

   private:
    void OnReadDone(bool ok) override {
      if (ok) {
        body_.leave([&body = body_, number = number_] { body.heard(number); });
      } else {
        body_.leave([&body = body_, number = number_] { body.broken(number); });
      }
    }
    void OnDone(const grpc::Status&) override {
      Body& body = body_;
      grpc::ClientContext* const closed = &context;
      delete this;
      body.closed(closed);
    }

    Body& body_;
    const std::uint64_t number_;
    const pb::WatchRequest request_;
    pb::WatchResponse response_;
    std::size_t endpoint_ = 0;
    bool started_ = false;
  };

  static Answer answer_of(const pb::TxnResponse& response) { return etcd::to_answer(response); }
  static Answer answer_of(const pb::CompactionResponse& response) {
    return {.status = Answer::Status::done, .revision = response.header().revision()};
  }

  // The first that is connected, from the cursor on; else the one at the cursor. Those that are not
  // are asked to be.
  Endpoint& endpoint() {
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      const std::size_t at = (cursor_ + i) % endpoints_.size();
      if (endpoints_[at].channel->GetState(true) != GRPC_CHANNEL_READY) continue;
      cursor_ = at;
      break;
    }
    return endpoints_[cursor_];
  }

  void failed(std::size_t endpoint, const grpc::Status& status) {
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
        status.error_message().find("invalid auth token") != std::string::npos) {
      token_.clear();
    }
    const bool silent = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                        status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (silent && endpoint == cursor_) cursor_ = (cursor_ + 1) % endpoints_.size();
  }

  // False if it is answered already: there is no token to ask with.
  template <typename AnyCall>
  bool open(const std::shared_ptr<AnyCall>& call, Duration within) {
    endpoint();
    call->endpoint = cursor_;
    call->context.set_deadline(system_clock::now() +
                               std::chrono::duration_cast<system_clock::duration>(within));
    call->context.set_wait_for_ready(true);
    if (!authenticate(call->context)) {
      leave([call, why = no_token_] { call->finish({grpc::StatusCode::UNAVAILABLE, why}); });
      return false;
    }
    opened(&call->context);
    return true;
  }

  // Waits for etcd, for a moment, when there is a user and no token yet.
  bool authenticate(grpc::ClientContext& context) {
    if (options_.user.empty()) return true;
    if (token_.empty()) {
      grpc::ClientContext asking;
      asking.set_deadline(system_clock::now() + kAuthenticateMax);
      asking.set_wait_for_ready(true);
      pb::AuthenticateRequest request;
      pb::AuthenticateResponse response;
      request.set_name(options_.user);
      request.set_password(options_.password);
      const auto stub = pb::Auth::NewStub(endpoint().channel);
      const grpc::Status status = stub->Authenticate(&asking, request, &response);
      if (!status.ok()) {
        failed(cursor_, status);
        no_token_ = "the user " + options_.user + " gets no token: " + status.error_message();
        return false;
      }
      token_ = response.token();
    }
    context.AddMetadata("token", token_);
    return true;
  }

  void opened(grpc::ClientContext* context) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    open_.insert(context);
  }
  // Any thread. `closed`, if it is given, is of no use to gRPC any more.
  void leave(Task task, grpc::ClientContext* closed = nullptr) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    open_.erase(closed);
    changed_.notify_all();
  }
  void closed(grpc::ClientContext* context) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    open_.erase(context);
    changed_.notify_all();
  }

  void heard(std::uint64_t number) {
    if (number != watch_number_ || stream_ == nullptr) return;
    const pb::WatchResponse& response = stream_->response();
    if (response.canceled()) {
      etcd::Watcher& watcher = *watcher_;
      const bool compacted = response.compact_revision() != 0;
      const std::string why = response.cancel_reason();
      unwatch();
      return watcher.ended(compacted, why);
    }
    const std::vector<etcd::Change> changes = etcd::to_changes(response);
    stream_->go_on();
    if (!changes.empty()) watcher_->changed(changes);
  }

  void broken(std::uint64_t number) {
    if (number != watch_number_ || watcher_ == nullptr) return;
    etcd::Watcher& watcher = *watcher_;
    if (stream_ != nullptr && stream_->endpoint() == cursor_) {
      cursor_ = (cursor_ + 1) % endpoints_.size();
    }
    unwatch();
    watcher.ended(false, "the stream has ended");
  }

  const GrpcEtcdOptions options_;

  // The client's thread's alone.
  std::vector<Endpoint> endpoints_;
  std::size_t cursor_ = 0;
  std::string token_;
  std::string no_token_;  // why there is none
  Stream* stream_ = nullptr;
  etcd::Watcher* watcher_ = nullptr;
  std::uint64_t watch_number_ = 0;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  std::set<grpc::ClientContext*> open_ GUARDED_BY(mutex_);
  bool woken_ GUARDED_BY(mutex_) = false;
};

GrpcEtcd::GrpcEtcd(const GrpcEtcdOptions& options) : body_(std::make_unique<Body>(options)) {}

GrpcEtcd::~GrpcEtcd() = default;

void GrpcEtcd::execute(const etcd::Txn& txn, Duration within, Done done) {
  body_->execute(txn, within, std::move(done));
}

void GrpcEtcd::compact(etcd::Revision revision, Duration within, Done done) {
  body_->compact(revision, within, std::move(done));
}

void GrpcEtcd::watch(const std::string& key, const std::string& range_end, etcd::Revision from,
                     etcd::Watcher& watcher) {
  body_->watch(key, range_end, from, watcher);
}

void GrpcEtcd::unwatch() { body_->unwatch(); }

void GrpcEtcd::run(Duration longest) { body_->run(longest); }

void GrpcEtcd::wake() { body_->wake(); }

}  // namespace lockd
