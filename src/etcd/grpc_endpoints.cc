#include "etcd/grpc_endpoints.h"

#include <chrono>

namespace lockd {
namespace {

namespace pb = etcdserverpb;

// etcd takes its time over a password, on purpose: so it is not asked all the time.
constexpr std::chrono::seconds kBetweenRefusals{1};

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
  // How long connecting may take: with TLS four round trips, and more when something is lost.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);  // etcd refuses less than 5 s
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(endpoint, credentials(options), arguments);
}

// It is not known, or users have changed since it was given. etcd has a word of its own for each,
// and codes that mean other things too.
bool names_token(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return true;
  for (const char* const words :
       {"invalid auth token", "revision of auth store is old", "revision in header is old"}) {
    if (status.error_message().find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

GrpcEndpoints::GrpcEndpoints(const GrpcEtcdOptions& options) : options_(options) {
  for (const std::string& endpoint : options.endpoints) {
    Endpoint& made = endpoints_.emplace_back();
    made.name = endpoint;
    made.channel = connect(endpoint, options);
    made.kv = pb::KV::NewStub(made.channel);
    made.watch = pb::Watch::NewStub(made.channel);
    made.maintenance = pb::Maintenance::NewStub(made.channel);
    made.auth = pb::Auth::NewStub(made.channel);
    made.channel->GetState(true);
  }
}

GrpcEndpoints::Endpoint& GrpcEndpoints::choose() {
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const std::size_t at = (cursor_ + i) % endpoints_.size();
    if (endpoints_[at].channel->GetState(true) != GRPC_CHANNEL_READY) continue;
    cursor_ = at;
    break;
  }
  return endpoints_[cursor_];
}

bool GrpcEndpoints::refuses_token(const grpc::Status& status) const {
  return !options_.user.empty() && names_token(status);
}

void GrpcEndpoints::failed(std::size_t endpoint, const grpc::Status& status) {
  if (refuses_token(status)) token_.clear();
  const bool silent = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                      status.error_code() == grpc::StatusCode::UNAVAILABLE;
  if (silent) pass_over(endpoint);
}

void GrpcEndpoints::pass_over(std::size_t endpoint) {
  if (endpoint == cursor_) cursor_ = (cursor_ + 1) % endpoints_.size();
}

void GrpcEndpoints::add_token(grpc::ClientContext& context) const {
  if (!token_.empty()) context.AddMetadata("token", token_);
}

pb::AuthenticateRequest GrpcEndpoints::token_request() const {
  pb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  return request;
}

void GrpcEndpoints::take_token(const grpc::Status& status,
                               const pb::AuthenticateResponse& response) {
  if (status.ok()) {
    token_ = response.token();
    return;
  }
  fetch_again_at_ = std::chrono::steady_clock::now() + kBetweenRefusals;
  why_no_token_ = "the user " + options_.user + " gets no token: " + status.error_message();
}

}  // namespace lockd
