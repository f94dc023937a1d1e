#include "etcd/grpc_etcd.h"

#include <etcd.grpc.pb.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "etcd/grpc_endpoints.h"
#include "etcd/watch_stream.h"

namespace lockd {

namespace pb = etcdserverpb;

// Between what this program calls things and what etcd's messages do.
namespace etcd {
namespace {

void add(const Operation& operation, pb::RequestOp* message) {
  switch (operation.type) {
    case Operation::Type::put: {
      pb::PutRequest* const put = message->mutable_request_put();
      put->set_key(operation.key);
      put->set_value(operation.value);
      break;
    }
    case Operation::Type::get: {
      pb::RangeRequest* const range = message->mutable_request_range();
      range->set_key(operation.key);
      range->set_range_end(operation.range_end);
      range->set_limit(operation.limit);
      range->set_revision(operation.revision);
      range->set_keys_only(operation.keys_only);
      break;
    }
    case Operation::Type::erase: {
      pb::DeleteRangeRequest* const erase = message->mutable_request_delete_range();
      erase->set_key(operation.key);
      erase->set_range_end(operation.range_end);
      break;
    }
  }
}

void add(const Compare& compare, pb::Compare* message) {
  message->set_result(pb::Compare::EQUAL);
  message->set_key(compare.key);
  if (const auto* const revision = std::get_if<Revision>(&compare.is)) {
    message->set_target(pb::Compare::MOD);
    message->set_mod_revision(*revision);
  } else {
    message->set_target(pb::Compare::VALUE);
    message->set_value(std::get<std::string>(compare.is));
  }
}

Entry to_entry(const pb::KeyValue& kv) { return {kv.key(), kv.value(), kv.mod_revision()}; }

pb::TxnRequest to_message(const Txn& txn) {
  pb::TxnRequest message;
  for (const Compare& compare : txn.compare) add(compare, message.add_compare());
  for (const Operation& operation : txn.then) add(operation, message.add_success());
  for (const Operation& operation : txn.otherwise) add(operation, message.add_failure());
  return message;
}

Answer to_answer(const pb::TxnResponse& response) {
  Answer answer{.status = Answer::Status::done,
                .succeeded = response.succeeded(),
                .revision = response.header().revision(),
                .store = response.header().cluster_id()};
  for (const pb::ResponseOp& operation : response.responses()) {
    if (!operation.has_response_range()) continue;
    std::vector<Entry>& found = answer.found.emplace_back();
    for (const pb::KeyValue& kv : operation.response_range().kvs()) found.push_back(to_entry(kv));
  }
  return answer;
}

// Why there is no answer.
Answer to_answer(const grpc::Status& status) {
  Answer answer{.message = status.error_message()};
  const auto says = [&](const char* text) {
    return answer.message.find(text) != std::string::npos;
  };
  switch (status.error_code()) {
    case grpc::StatusCode::OUT_OF_RANGE:
      // The future of one store is the past of the one that was there before it was emptied.
      if (says("compacted") || says("future revision")) answer.status = Answer::Status::compacted;
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (says("space exceeded")) answer.status = Answer::Status::no_space;
      break;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNIMPLEMENTED: answer.status = Answer::Status::refused; break;
    default: break;
  }
  return answer;
}

StoreSize size_in(const pb::StatusResponse& response) {
  return {.taken = static_cast<std::uint64_t>(response.dbsize()),
          .needed = static_cast<std::uint64_t>(response.dbsizeinuse()),
          .quota = static_cast<std::uint64_t>(response.dbsizequota())};
}

std::vector<Change> to_changes(const pb::WatchResponse& response) {
  std::vector<Change> changes;
  changes.reserve(static_cast<std::size_t>(response.events_size()));
  for (const pb::Event& event : response.events()) {
    changes.push_back({to_entry(event.kv()), event.type() == pb::Event::DELETE});
  }
  return changes;
}

}  // namespace
}  // namespace etcd

namespace {

using etcd::Answer;
using Done = etcd::Client::Done;
using Measured = etcd::Client::Measured;

constexpr Duration kStatusMax = std::chrono::seconds(5);
constexpr Duration kAuthenticateMax = std::chrono::seconds(5);
// gRPC counts in milliseconds: shorter waits are not its own.
constexpr Duration kTick = std::chrono::milliseconds(1);
// Then whoever calls run() goes on with what has come, however much more there is.
constexpr int kAtOnce = 16;

gpr_timespec from_now(Duration time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

}  // namespace

class GrpcEtcd::Impl {
 public:
  explicit Impl(const GrpcEtcdOptions& options)
      : endpoints_(std::make_unique<GrpcEndpoints>(options)) {
    // gRPC stays, though a server that begins anew has nothing open for a moment.
    static const bool kept = (grpc_init(), true);
    static_cast<void>(kept);
  }

  // gRPC is done with this when nothing is open any more.
  ~Impl() {
    unwatch();
    closing_ = true;
    for (grpc::ClientContext* context : open_) context->TryCancel();
    while (!open_.empty()) take_next(gpr_inf_future(GPR_CLOCK_MONOTONIC));
    alarm_.Cancel();
    queue_.Shutdown();
    while (take_next(gpr_inf_future(GPR_CLOCK_MONOTONIC))) {
    }
  }

  void switch_member() { endpoints_->pass_over(endpoints_->cursor()); }

  void execute(const etcd::Txn& txn, Duration within, Done done) {
    const auto call = std::make_shared<Call<pb::TxnRequest, pb::TxnResponse>>(*this);
    call->request = etcd::to_message(txn);
    call->done = std::move(done);
    open(call, within, [this](auto& asks) {
      return endpoints_->choose().kv->PrepareAsyncTxn(&asks.context, asks.request, &queue_);
    });
  }

  void compact(etcd::Revision revision, Duration within, Done done) {
    const auto call = std::make_shared<Call<pb::CompactionRequest, pb::CompactionResponse>>(*this);
    call->request.set_revision(revision);
    call->done = std::move(done);
    open(call, within, [this](auto& asks) {
      return endpoints_->choose().kv->PrepareAsyncCompact(&asks.context, asks.request, &queue_);
    });
  }

  void measure(Duration within, Measured measured) {
    endpoints_->choose();
    ask_status(endpoints_->cursor(), within, std::move(measured));
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
    const std::uint64_t number = ++watch_number_;
    stream_ = new WatchStream(
        std::move(request),
        [this, number](bool is_response) { is_response ? heard(number) : broken(number); },
        [this](grpc::ClientContext* context) { open_.erase(context); });
    with_token([this, number](bool has_token) {
      if (number != watch_number_) return;
      if (!has_token) return later([this, number] { broken(number); });
      endpoints_->add_token(stream_->context);
      pb::Watch::Stub& stub = *endpoints_->choose().watch;
      open_.insert(&stream_->context);
      stream_->start(stub, endpoints_->cursor(), queue_);
    });
  }

  // What it still sends is nobody's.
  void unwatch() {
    ++watch_number_;
    watcher_ = nullptr;
    if (stream_ != nullptr) std::exchange(stream_, nullptr)->let_go();
  }

  void run(Duration longest) {
    take_new_options();
    if (!tasks_.empty()) longest = Duration::zero();
    for (const Task& task : std::exchange(tasks_, {})) task();
    if (longest <= kTick) {
      nap(longest);
      longest = Duration::zero();
    }
    // A deadline that is now is rounded up to the next millisecond.
    gpr_timespec until =
        longest > Duration::zero() ? from_now(longest) : gpr_inf_past(GPR_CLOCK_MONOTONIC);
    for (int i = 0; i < kAtOnce && take_next(until); ++i) {
      until = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
  }

  // Any thread.
  void renew(const GrpcEtcdOptions& options) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      new_options_ = options;
    }
    wake();
  }

  // Any thread. One wake-up is on its way at a time.
  void wake() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(woken_, true)) return;
    if (napping_) return nap_over_.notify_one();
    alarm_.Set(&queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), nullptr);
  }

 private:
  using Task = std::function<void()>;
  using Authenticated = std::function<void(bool has_token)>;

  // A question that has one answer. gRPC has it until then.
  template <typename RequestType, typename ResponseType>
  struct Unary : GrpcTag {
    using Response = ResponseType;

    explicit Unary(Impl& body) : body(body) {}

    void complete(bool) override {
      const std::shared_ptr<Unary> self = std::move(kept);
      body.open_.erase(&context);
      if (!body.closing_) finish();
    }
    virtual void finish() = 0;

    Impl& body;
    RequestType request;
    ResponseType response;
    grpc::Status status;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<ResponseType>> reader;
    std::shared_ptr<Unary> kept;
    std::size_t endpoint = 0;
  };

  template <typename Request, typename Response>
  struct Call final : Unary<Request, Response> {
    using Unary<Request, Response>::Unary;

    void finish() override {
      Impl& body = this->body;
      const grpc::Status& status = this->status;
      if (status.ok()) {
        body.note_term(this->response.header().raft_term());
      } else {
        body.endpoints_->failed(this->endpoint, status);
      }
      done(status.ok() ? answer_of(this->response) : body.failure(this->endpoint, status));
    }

    Done done;
  };

  // How a member is: whether it leads the others, and what its store takes.
  struct StatusCall final : Unary<pb::StatusRequest, pb::StatusResponse> {
    using Unary::Unary;

    void finish() override {
      if (!status.ok()) return;
      if (response.leader() == response.header().member_id()) body.endpoints_->prefer(endpoint);
      if (measured) measured(etcd::size_in(response));
    }

    Measured measured{};
  };

  void ask_status(std::size_t endpoint, Duration within, Measured measured = {}) {
    const auto call = std::make_shared<StatusCall>(*this);
    call->endpoint = endpoint;
    call->measured = std::move(measured);
    call->context.set_deadline(from_now(within));
    with_token([this, call](bool has_token) {
      if (!has_token) return;
      endpoints_->add_token(call->context);
      pb::Maintenance::Stub& stub = *endpoints_->all()[call->endpoint].maintenance;
      send(call, stub.PrepareAsyncStatus(&call->context, call->request, &queue_));
    });
  }

  // For a token, whose coming those who need it wait for.
  struct TokenCall final : Unary<pb::AuthenticateRequest, pb::AuthenticateResponse> {
    using Unary::Unary;

    void finish() override {
      if (!status.ok()) body.endpoints_->failed(endpoint, status);
      body.endpoints_->take_token(status, response);
      body.fetching_token_ = false;
      for (const Authenticated& go_on : std::exchange(body.want_token_, {})) go_on(status.ok());
    }
  };

  // Goes on when there is a token, if one is needed; or when there is none to be had.
  void with_token(Authenticated go_on) {
    if (!endpoints_->lacks_token()) return go_on(true);
    if (endpoints_->is_refused_token()) return go_on(false);
    want_token_.push_back(std::move(go_on));
    if (std::exchange(fetching_token_, true)) return;
    const auto call = std::make_shared<TokenCall>(*this);
    call->request = endpoints_->token_request();
    call->context.set_deadline(from_now(kAuthenticateMax));
    call->context.set_wait_for_ready(true);
    pb::Auth::Stub& stub = *endpoints_->choose().auth;
    call->endpoint = endpoints_->cursor();
    send(call, stub.PrepareAsyncAuthenticate(&call->context, call->request, &queue_));
  }

  // With a new term of etcd's there is a new leader among its members. Everything that is asked
  // goes by way of the leader, so it is nearer if it is asked of it.
  void note_term(std::uint64_t term) {
    if (std::exchange(term_, term) == term || endpoints_->all().size() == 1) return;
    for (std::size_t i = 0; i < endpoints_->all().size(); ++i) ask_status(i, kStatusMax);
  }

  static Answer answer_of(const pb::TxnResponse& response) { return etcd::to_answer(response); }
  static Answer answer_of(const pb::CompactionResponse& response) {
    return {.status = Answer::Status::done, .revision = response.header().revision()};
  }

  // People are told of whom it was asked. What was asked with an outdated token is asked again with
  // another: that is no refusal.
  Answer failure(std::size_t endpoint, const grpc::Status& status) {
    Answer answer = etcd::to_answer(status);
    if (endpoints_->refuses_token(status)) answer.status = Answer::Status::unknown;
    const bool connected =
        endpoints_->all()[endpoint].channel->GetState(false) == GRPC_CHANNEL_READY;
    answer.message = endpoints_->all()[endpoint].name + ": " +
                     (connected ? answer.message : "no connection: " + answer.message);
    return answer;
  }

  // Asks what `prepare` makes of the call, or answers it soon: there is no token to ask with.
  template <typename AnyCall, typename Prepare>
  void open(const std::shared_ptr<AnyCall>& call, Duration within, Prepare prepare) {
    call->context.set_deadline(from_now(within));
    call->context.set_wait_for_ready(true);
    with_token([this, call, prepare](bool has_token) {
      endpoints_->choose();
      call->endpoint = endpoints_->cursor();
      if (!has_token) {
        call->status = {grpc::StatusCode::UNAVAILABLE, endpoints_->why_no_token()};
        return later([call] { call->finish(); });
      }
      endpoints_->add_token(call->context);
      send(call, prepare(*call));
    });
  }

  template <typename AnyCall>
  void send(const std::shared_ptr<AnyCall>& call,
            std::unique_ptr<grpc::ClientAsyncResponseReader<typename AnyCall::Response>> reader) {
    open_.insert(&call->context);
    call->kept = call;
    call->reader = std::move(reader);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, static_cast<GrpcTag*>(call.get()));
  }

  // With the next run(): nothing is called back from within a call.
  void later(Task task) { tasks_.push_back(std::move(task)); }

  // Whatever gRPC has to tell has to wait.
  void nap(Duration longest) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (woken_ || longest <= Duration::zero()) return;
    napping_ = true;
    nap_over_.wait_for(mutex_, longest);
    napping_ = false;
    woken_ = false;
  }

  // False if nothing has come by then.
  bool take_next(gpr_timespec until) EXCLUDES(mutex_) {
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return false;
    if (tag == nullptr) {
      MutexLock lock(mutex_);
      woken_ = false;
    } else {
      static_cast<GrpcTag*>(tag)->complete(ok);
    }
    return true;
  }

  void take_new_options() EXCLUDES(mutex_) {
    std::optional<GrpcEtcdOptions> options;
    {
      MutexLock lock(mutex_);
      options.swap(new_options_);
    }
    if (options.has_value()) endpoints_ = std::make_unique<GrpcEndpoints>(*options);
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
    if (stream_ != nullptr) endpoints_->pass_over(stream_->endpoint());
    unwatch();
    watcher.ended(false, "the stream has ended");
  }

  // All but the last lines are the client's thread's alone.
  grpc::CompletionQueue queue_;
  std::unique_ptr<GrpcEndpoints> endpoints_;
  std::set<grpc::ClientContext*> open_;  // of which gRPC has a use
  bool closing_ = false;
  std::deque<Task> tasks_;
  std::uint64_t term_ = 0;  // of etcd's election
  bool fetching_token_ = false;
  std::vector<Authenticated> want_token_;
  WatchStream* stream_ = nullptr;
  etcd::Watcher* watcher_ = nullptr;
  std::uint64_t watch_number_ = 0;

  Mutex mutex_;
  bool woken_ GUARDED_BY(mutex_) = false;
  bool napping_ GUARDED_BY(mutex_) = false;
  std::condition_variable_any nap_over_;  // for who wakes it during a nap,
  grpc::Alarm alarm_;                     // and else
  std::optional<GrpcEtcdOptions> new_options_ GUARDED_BY(mutex_);
};

GrpcEtcd::GrpcEtcd(const GrpcEtcdOptions& options) : impl_(std::make_unique<Impl>(options)) {}

GrpcEtcd::~GrpcEtcd() = default;

void GrpcEtcd::switch_member() { impl_->switch_member(); }

void GrpcEtcd::execute(const etcd::Txn& txn, Duration within, Done done) {
  impl_->execute(txn, within, std::move(done));
}

void GrpcEtcd::compact(etcd::Revision revision, Duration within, Done done) {
  impl_->compact(revision, within, std::move(done));
}

void GrpcEtcd::measure(Duration within, Measured measured) {
  impl_->measure(within, std::move(measured));
}

void GrpcEtcd::watch(const std::string& key, const std::string& range_end, etcd::Revision from,
                     etcd::Watcher& watcher) {
  impl_->watch(key, range_end, from, watcher);
}

void GrpcEtcd::unwatch() { impl_->unwatch(); }

void GrpcEtcd::run(Duration longest) { impl_->run(longest); }

void GrpcEtcd::wake() { impl_->wake(); }

void GrpcEtcd::renew(const GrpcEtcdOptions& options) { impl_->renew(options); }

// What gRPC says by itself.

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kSilence{1};
constexpr std::size_t kDifferentMax = 16;

class GrpcLog {
 public:
  void send_to(Log log) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    log_ = std::move(log);
  }

  void take(const std::string& complaint) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const Clock::time_point now = Clock::now();
    std::erase_if(said_, [&](const auto& said) { return now - said.second >= kSilence; });
    if (said_.size() >= kDifferentMax || !said_.emplace(complaint, now).second) return;
    if (log_) log_("etcd: " + complaint);
  }

 private:
  Mutex mutex_;
  Log log_ GUARDED_BY(mutex_);
  std::map<std::string, Clock::time_point> said_ GUARDED_BY(mutex_);
};

// Never destroyed: gRPC's threads may outlive everything here.
GrpcLog& grpc_log() {
  static GrpcLog& log = *new GrpcLog;
  return log;
}

}  // namespace

void take_grpc_log(Log log) {
  grpc_log().send_to(std::move(log));
  gpr_set_log_function([](gpr_log_func_args* args) {
    if (args->severity == GPR_LOG_SEVERITY_ERROR) grpc_log().take(args->message);
  });
}

}  // namespace lockd
