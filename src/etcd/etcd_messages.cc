#include "etcd/etcd_messages.h"

#include <utility>

namespace lockd::etcd {
namespace {

namespace pb = etcdserverpb;

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

}  // namespace

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
                .revision = response.header().revision()};
  for (const pb::ResponseOp& operation : response.responses()) {
    if (!operation.has_response_range()) continue;
    std::vector<Entry>& found = answer.found.emplace_back();
    for (const pb::KeyValue& kv : operation.response_range().kvs()) found.push_back(to_entry(kv));
  }
  return answer;
}

Answer to_answer(const grpc::Status& status) {
  Answer answer{.message = status.error_message()};
  const auto says = [&](const char* text) {
    return answer.message.find(text) != std::string::npos;
  };
  switch (status.error_code()) {
    case grpc::StatusCode::OUT_OF_RANGE:
      if (says("compacted")) answer.status = Answer::Status::compacted;
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

std::vector<Change> to_changes(const pb::WatchResponse& response) {
  std::vector<Change> changes;
  changes.reserve(static_cast<std::size_t>(response.events_size()));
  for (const pb::Event& event : response.events()) {
    changes.push_back({to_entry(event.kv()), event.type() == pb::Event::DELETE});
  }
  return changes;
}

}  // namespace lockd::etcd
