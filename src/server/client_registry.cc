#include "server/client_registry.h"

#include <algorithm>
#include <utility>

namespace lockd {

std::shared_ptr<ClientActivity> ClientRegistry::enter(SessionId id, Protocol protocol,
                                                      std::string peer, ClientHost& host,
                                                      std::uint8_t mailbox,
                                                      std::string forwarded_as) {
  auto activity = std::make_shared<ClientActivity>();
  Entry entry{.protocol = protocol,
              .mailbox = mailbox,
              .host = &host,
              .since = activity->heard.load(std::memory_order_relaxed),
              .activity = activity,
              .peer = std::move(peer),
              .forwarded_as = std::move(forwarded_as)};
  MutexLock lock(mutex_);
  connected_.emplace(id, std::move(entry));
  return activity;
}

void ClientRegistry::leave(SessionId id) {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found == connected_.end()) return;
  Entry& entry = found->second;
  gone_.insert_or_assign(id, ClientOrigin{.peer = std::move(entry.peer),
                                          .client = std::move(entry.client),
                                          .token_name = std::move(entry.token_name),
                                          .forwarded_as = std::move(entry.forwarded_as)});
  gone_in_order_.push_back(id);
  connected_.erase(found);
  if (gone_in_order_.size() <= kGoneMax) return;
  gone_.erase(gone_in_order_.front());
  gone_in_order_.pop_front();
}

void ClientRegistry::name(SessionId id, ClientRef client) {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found != connected_.end()) found->second.client = std::move(client);
}

void ClientRegistry::authenticate(SessionId id, std::string_view token_name) {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found != connected_.end()) found->second.token_name = token_name;
}

std::optional<ClientOrigin> ClientRegistry::find(SessionId id) const {
  MutexLock lock(mutex_);
  if (const auto found = connected_.find(id); found != connected_.end()) {
    return ClientOrigin{.peer = found->second.peer,
                        .client = found->second.client,
                        .token_name = found->second.token_name,
                        .is_connected = true,
                        .forwarded_as = found->second.forwarded_as};
  }
  const auto found = gone_.find(id);
  if (found == gone_.end()) return {};
  return found->second;
}

std::optional<ClientStatus> ClientRegistry::status(SessionId id) const {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found == connected_.end()) return {};
  return status_of(*found, ClientActivity::Clock::now());
}

std::vector<ClientStatus> ClientRegistry::list_some(SessionId after, std::size_t count_max) const {
  const auto now = ClientActivity::Clock::now();
  std::vector<ClientStatus> some;
  MutexLock lock(mutex_);
  for (auto next = connected_.upper_bound(after);
       next != connected_.end() && some.size() < count_max; ++next) {
    some.push_back(status_of(*next, now));
  }
  return some;
}

// It may have come, or been heard, since `now` was read.
ClientStatus ClientRegistry::status_of(const Entries::value_type& entry,
                                       ClientActivity::Clock::time_point now) {
  const auto& [id, client] = entry;
  const ClientActivity& activity = *client.activity;
  const auto since = [now](ClientActivity::Clock::time_point then) {
    return std::max(Duration(now - then), Duration::zero());
  };
  return {.id = id,
          .protocol = client.protocol,
          .peer = client.peer,
          .client = client.client,
          .token_name = client.token_name,
          .connected = since(client.since),
          .idle = since(activity.heard.load(std::memory_order_relaxed)),
          .unsent_bytes = activity.unsent_bytes.load(std::memory_order_relaxed),
          .mailbox = client.mailbox,
          .forwarded_as = client.forwarded_as};
}

// The host is called with the mutex held: it is there for as long as its client is.

void ClientRegistry::lose(SessionId id, LostHold lost) noexcept {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found == connected_.end() || found->second.client == nullptr) return;
  found->second.host->leave_loss(id, std::move(lost));
}

bool ClientRegistry::disconnect(SessionId id, ClientHost::OnGone on_gone) {
  MutexLock lock(mutex_);
  const auto found = connected_.find(id);
  if (found == connected_.end()) return false;
  found->second.host->leave_disconnect(id, std::move(on_gone));
  return true;
}

}  // namespace lockd
