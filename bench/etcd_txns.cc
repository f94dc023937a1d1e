#include "etcd_txns.h"

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <stdexcept>

namespace lockd::bench {
namespace {

namespace pb = etcdserverpb;
using Clock = std::chrono::steady_clock;

// A header, and what a grant and a release are on average; seen as
// lockd_cluster_append_bytes_total, which counts the head's 33 bytes too.
constexpr std::size_t kHeaderSize = 48;
constexpr std::size_t kRequestSize = 30;
const std::string kPrefix = "/bench-txns/";

void expect(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error("etcd: " + status.error_message());
}

std::shared_ptr<grpc::Channel> connect_to_leader(const std::vector<std::string>& endpoints) {
  for (const std::string& endpoint : endpoints) {
    auto channel = grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    pb::StatusResponse response;
    expect(pb::Maintenance::NewStub(channel)->Status(&context, {}, &response));
    if (response.leader() == response.header().member_id()) return channel;
  }
  throw std::runtime_error("etcd: no member leads");
}

void add_put(pb::TxnRequest& txn, const std::string& key, const std::string& value) {
  pb::PutRequest& put = *txn.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(value);
}

pb::Compare& add_compare(pb::TxnRequest& txn, const std::string& key) {
  pb::Compare& compare = *txn.add_compare();
  compare.set_result(pb::Compare::EQUAL);
  compare.set_key(key);
  return compare;
}

// As Term::prepare() makes them: each follows the last.
class Chain {
 public:
  Chain(const std::vector<std::string>& endpoints, std::size_t batch_size)
      : kv_(pb::KV::NewStub(connect_to_leader(endpoints))), batch_(batch_size, 'x') {
    pb::TxnRequest first;
    add_put(first, kPrefix + "leader", "bench");
    add_put(first, kPrefix + "head", head_);
    epoch_ = execute(first).header().revision();
  }

  void append() {
    pb::TxnRequest txn;
    pb::Compare& leads = add_compare(txn, kPrefix + "leader");
    leads.set_target(pb::Compare::MOD);
    leads.set_mod_revision(epoch_);
    pb::Compare& follows = add_compare(txn, kPrefix + "head");
    follows.set_target(pb::Compare::VALUE);
    follows.set_value(head_);
    head_ = std::to_string(++batches_);
    head_.insert(0, 33 - head_.size(), '0');
    add_put(txn, kPrefix + "j/" + head_, batch_);
    add_put(txn, kPrefix + "head", head_);
    if (!execute(txn).succeeded()) throw std::runtime_error("etcd: an append was refused");
  }

 private:
  pb::TxnResponse execute(const pb::TxnRequest& txn) {
    grpc::ClientContext context;
    pb::TxnResponse response;
    expect(kv_->Txn(&context, txn, &response));
    return response;
  }

  const std::unique_ptr<pb::KV::Stub> kv_;
  const std::string batch_;
  std::string head_ = "none";
  std::int64_t epoch_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace

LoadResult run_etcd_txns(const std::vector<std::string>& endpoints, int requests_each,
                         LoadTimes times) {
  const auto requests = static_cast<std::size_t>(requests_each);
  Chain chain(endpoints, kHeaderSize + requests * kRequestSize);
  LoadResult result;
  const Clock::time_point begin = Clock::now() + times.warm_up;
  const Clock::time_point end = begin + times.measured;
  for (Clock::time_point sent = Clock::now(); sent < end;) {
    chain.append();
    const Clock::time_point now = Clock::now();
    if (now >= begin && now < end) {
      result.requests += requests;
      result.latencies.record(now - sent);
    }
    sent = now;
  }
  result.elapsed = times.measured;
  return result;
}

}  // namespace lockd::bench
