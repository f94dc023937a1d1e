// Between what this program calls things and what etcd's messages do.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include <etcd.pb.h>
#include "replication/etcd_client.h"

namespace lockd::etcd {

etcdserverpb::TxnRequest to_message(const Txn& txn);
Answer to_answer(const etcdserverpb::TxnResponse& response);
// Why there is no answer.
Answer to_answer(const grpc::Status& status);
std::vector<Change> to_changes(const etcdserverpb::WatchResponse& response);

}  // namespace lockd::etcd
