#include "client/cluster.h"

#include <algorithm>
#include <utility>

#include "lockd/client/client.h"

namespace lockd::client {

Result<std::shared_ptr<Cluster>> Cluster::make(std::span<const Address> addresses,
                                               const ConnectOptions& options) {
  if (addresses.empty() || addresses.size() > kClusterSizeMax) {
    return {Outcome::invalid,
            "a cluster has 1 to " + std::to_string(kClusterSizeMax) + " addresses"};
  }
  const auto made = std::make_shared<Cluster>();
  for (const Address& address : addresses) {
    if (made->find(address)) {
      return {Outcome::invalid, address.to_string() + " is given twice"};
    }
    auto endpoint = Endpoint::make(address, options);
    if (!endpoint) return Status(std::move(endpoint));
    made->members_.push_back(std::move(*endpoint));
  }
  MutexLock lock(made->mutex_);
  made->whereabouts_.resize(made->members_.size());
  return made;
}

std::optional<std::size_t> Cluster::find(const Address& address) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member->address == address; });
  if (found == members_.end()) return {};
  return static_cast<std::size_t>(found - members_.begin());
}

std::size_t Cluster::index_of(const LineConnection& connection) const {
  return *find(connection.endpoint()->address);
}

std::string Cluster::names() const {
  std::string all;
  for (const auto& member : members_) {
    all += (all.empty() ? "" : ", ") + member->address.to_string();
  }
  return all;
}

std::optional<SocketAddresses> Cluster::addresses_of(std::size_t index) const {
  MutexLock lock(mutex_);
  return whereabouts_[index].addresses;
}

void Cluster::learn(std::size_t index, SocketAddresses addresses) {
  MutexLock lock(mutex_);
  whereabouts_[index].addresses = std::move(addresses);
}

void Cluster::look_up(std::size_t index) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(whereabouts_[index].is_looked_up, true)) return;
  }
  resolve_in_background(member(index)->address,
                        [self = shared_from_this(), index](Result<SocketAddresses> answer) {
                          self->end_look_up(index, std::move(answer));
                        });
}

// One that fails leaves what was known before: a name server that is away takes nobody with it.
void Cluster::end_look_up(std::size_t index, Result<SocketAddresses> answer) {
  MutexLock lock(mutex_);
  whereabouts_[index].is_looked_up = false;
  if (answer) whereabouts_[index].addresses = std::move(*answer);
}

}  // namespace lockd::client
