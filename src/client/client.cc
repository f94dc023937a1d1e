#include "lockd/client/client.h"

#include <stdexcept>
#include <utility>

#include "base/crc32.h"
#include "client/acquisition.h"
#include "client/calls.h"
#include "client/connection_impl.h"
#include "client/endpoint.h"
#include "client/keeper.h"
#include "client/place_impl.h"
#include "client/reply.h"
#include "client/request_lines.h"

namespace lockd::client {

std::size_t shard_of(std::string_view key, std::size_t servers) noexcept {
  return crc32(key) % servers;
}

class Client::Impl {
 public:
  explicit Impl(ClientOptions given)
      : options(std::move(given)),
        keeper(Keeper::start(std::max(options.release_timeout, Duration(0)))) {
    for (const Address& server : options.servers) {
      endpoints.push_back(Endpoint::make(server, options.connect));
    }
  }

  Result<std::unique_ptr<Conversation>> open(std::string_view key, std::stop_token stop) const {
    const auto& endpoint = endpoints[shard_of(key, endpoints.size())];
    if (!endpoint) return static_cast<const Status&>(endpoint);
    return open_conversation(*endpoint, std::move(stop));
  }

  const ClientOptions options;
  std::vector<Result<std::shared_ptr<const Endpoint>>> endpoints;
  const std::shared_ptr<Keeper> keeper;
};

Client::Client(ClientOptions options) {
  if (options.servers.empty()) throw std::invalid_argument("a client needs a server");
  impl_ = std::make_unique<Impl>(std::move(options));
}

Client::~Client() = default;

Result<HeldLock> Client::acquire(const LockRequest& request, std::stop_token stop) {
  if (request.wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  const auto lines = acquire_lines({.key = request.key,
                                    .wait = seconds_to_name(request.wait),
                                    .lease = request.lease,
                                    .kind = request.kind,
                                    .limit = request.limit});
  if (!lines) return static_cast<const Status&>(lines);
  auto conversation = impl_->open(request.key, stop);
  if (!conversation) return Status(std::move(conversation));
  auto grant = stand_in_line(**conversation, *lines, request.wait, request.lease, stop);
  if (!grant) return Status(std::move(grant));
  return take_over(impl_->keeper, std::move(*conversation),
                   {std::string(request.key), request.kind, request.on_lost}, std::move(*grant),
                   std::move(stop));
}

Result<Place> Client::enqueue(const LockRequest& request, std::stop_token stop) {
  const auto lines = enqueue_lines(
      {.key = request.key, .lease = request.lease, .kind = request.kind, .limit = request.limit});
  if (!lines) return static_cast<const Status&>(lines);
  auto conversation = impl_->open(request.key, stop);
  if (!conversation) return Status(std::move(conversation));
  auto reply = ask(**conversation, {.lines = *lines}, std::move(stop));
  if (!reply) return Status(std::move(reply));
  auto grant = grant_of(reply->line, request.lease);
  if (!grant && grant.outcome != Outcome::queued) return Status(std::move(grant));
  auto place = std::make_unique<Place::Impl>();
  place->keeper = impl_->keeper;
  place->conversation = std::move(*conversation);
  place->terms = {std::string(request.key), request.kind, request.on_lost};
  place->lease = request.lease;
  if (grant) {
    grant->sent_at = reply->sent_at;
    place->grant = std::move(*grant);
  }
  return Place(std::move(place));
}

const Address& Client::server_of(std::string_view key) const noexcept {
  return impl_->options.servers[shard_of(key, impl_->options.servers.size())];
}

Result<Connection> Client::connect(std::string_view key, std::stop_token stop) {
  auto conversation = impl_->open(key, std::move(stop));
  if (!conversation) return Status(std::move(conversation));
  return Connection(std::make_unique<Connection::Impl>(std::move(*conversation)));
}

}  // namespace lockd::client
