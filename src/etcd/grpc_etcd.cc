#include "etcd/grpc_etcd.h"

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "etcd/etcd_messages.h"
#include "etcd/grpc_endpoints.h"
#include "etcd/watch_stream.h"

namespace lockd {
namespace {

namespace pb = etcdserverpb;
using etcd::Answer;
using Done = etcd::Client::Done;
using std::chrono::system_clock;

constexpr std::chrono::seconds kQuestionMax{1};

}  // namespace

class GrpcEtcd::Impl {
 public:
  explicit Impl(const GrpcEtcdOptions& options) : endpoints_(options) {}

  // gRPC's threads are done with this when nothing is open any more.
  ~Impl() {
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
    endpoints_.choose().kv->async()->Txn(
        &call->context, &call->request, &call->response,
        [call](const grpc::Status& status) { Impl::answered(call, status); });
  }

  void compact(etcd::Revision revision, Duration within, Done done) {
    const auto call = std::make_shared<Call<pb::CompactionRequest, pb::CompactionResponse>>(*this);
    call->request.set_revision(revision);
    call->done = std::move(done);
    if (!open(call, within)) return;
    endpoints_.choose().kv->async()->Compact(
        &call->context, &call->request, &call->response,
        [call](const grpc::Status& status) { Impl::answered(call, status); });
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
        std::move(request), [this, number](bool is_response) { came(number, is_response); },
        [this](grpc::ClientContext* context) { closed(context); });
    if (!endpoints_.authenticate(stream_->context)) return came(number, false);
    pb::Watch::Stub& stub = *endpoints_.choose().watch;
    opened(&stream_->context);
    stream_->start(stub, endpoints_.cursor());
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

  template <typename Request, typename Response>
  struct Call {
    explicit Call(Impl& body) : body(body) {}

    void finish(const grpc::Status& status) {
      if (status.ok()) {
        body.note_term(response.header().raft_term());
      } else {
        body.endpoints_.failed(endpoint, status);
      }
      done(status.ok() ? answer_of(response) : body.failure(endpoint, status));
    }

    Impl& body;
    Request request;
    Response response;
    grpc::ClientContext context;
    Done done;
    std::size_t endpoint = 0;
  };

  // Whether a member leads the others.
  struct Question {
    explicit Question(Impl& body) : body(body) {}

    void finish(const grpc::Status& status) const {
      const bool leads = status.ok() && response.leader() == response.header().member_id();
      if (leads) body.endpoints_.prefer(endpoint);
    }

    Impl& body;
    pb::StatusRequest request;
    pb::StatusResponse response;
    grpc::ClientContext context;
    std::size_t endpoint = 0;
  };

  // With a new term of etcd's there is a new leader among its members. Everything that is asked
  // goes by way of the leader, so it is nearer if it is asked of it.
  void note_term(std::uint64_t term) {
    if (std::exchange(term_, term) == term || endpoints_.all().size() == 1) return;
    for (std::size_t i = 0; i < endpoints_.all().size(); ++i) {
      const auto question = std::make_shared<Question>(*this);
      question->endpoint = i;
      question->context.set_deadline(system_clock::now() + kQuestionMax);
      if (!endpoints_.authenticate(question->context)) return;
      opened(&question->context);
      endpoints_.all()[i].maintenance->async()->Status(
          &question->context, &question->request, &question->response,
          [question](const grpc::Status& status) { Impl::answered(question, status); });
    }
  }

  // On a thread of gRPC's.
  template <typename AnyCall>
  static void answered(const std::shared_ptr<AnyCall>& call, const grpc::Status& status) {
    call->body.leave([call, status] { call->finish(status); }, &call->context);
  }

  static Answer answer_of(const pb::TxnResponse& response) { return etcd::to_answer(response); }
  static Answer answer_of(const pb::CompactionResponse& response) {
    return {.status = Answer::Status::done, .revision = response.header().revision()};
  }

  // People are told of whom it was asked.
  Answer failure(std::size_t endpoint, const grpc::Status& status) {
    Answer answer = etcd::to_answer(status);
    const bool connected =
        endpoints_.all()[endpoint].channel->GetState(false) == GRPC_CHANNEL_READY;
    answer.message = endpoints_.all()[endpoint].name + ": " +
                     (connected ? answer.message : "no connection: " + answer.message);
    return answer;
  }

  // False if it is answered already: there is no token to ask with.
  template <typename AnyCall>
  bool open(const std::shared_ptr<AnyCall>& call, Duration within) {
    endpoints_.choose();
    call->endpoint = endpoints_.cursor();
    call->context.set_deadline(system_clock::now() +
                               std::chrono::duration_cast<system_clock::duration>(within));
    call->context.set_wait_for_ready(true);
    if (!endpoints_.authenticate(call->context)) {
      leave([call, why = endpoints_.why_no_token()] {
        call->finish({grpc::StatusCode::UNAVAILABLE, why});
      });
      return false;
    }
    opened(&call->context);
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

  // Any thread.
  void came(std::uint64_t number, bool is_response) {
    leave([this, number, is_response] { is_response ? heard(number) : broken(number); });
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
    if (stream_ != nullptr) endpoints_.pass_over(stream_->endpoint());
    unwatch();
    watcher.ended(false, "the stream has ended");
  }

  // The client's thread's alone.
  GrpcEndpoints endpoints_;
  std::uint64_t term_ = 0;  // of etcd's election
  WatchStream* stream_ = nullptr;
  etcd::Watcher* watcher_ = nullptr;
  std::uint64_t watch_number_ = 0;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);
  std::set<grpc::ClientContext*> open_ GUARDED_BY(mutex_);
  bool woken_ GUARDED_BY(mutex_) = false;
};

GrpcEtcd::GrpcEtcd(const GrpcEtcdOptions& options) : impl_(std::make_unique<Impl>(options)) {}

GrpcEtcd::~GrpcEtcd() = default;

void GrpcEtcd::execute(const etcd::Txn& txn, Duration within, Done done) {
  impl_->execute(txn, within, std::move(done));
}

void GrpcEtcd::compact(etcd::Revision revision, Duration within, Done done) {
  impl_->compact(revision, within, std::move(done));
}

void GrpcEtcd::watch(const std::string& key, const std::string& range_end, etcd::Revision from,
                     etcd::Watcher& watcher) {
  impl_->watch(key, range_end, from, watcher);
}

void GrpcEtcd::unwatch() { impl_->unwatch(); }

void GrpcEtcd::run(Duration longest) { impl_->run(longest); }

void GrpcEtcd::wake() { impl_->wake(); }

}  // namespace lockd
