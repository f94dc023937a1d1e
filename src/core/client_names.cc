#include "core/client_names.h"

#include <memory>
#include <string>

namespace lockd {

std::size_t ClientNames::Hash::operator()(const ClientView& client) const {
  HashKey chained = key;  // each text's hash keys the next, so that the text boundaries count
  for (const std::string_view text : {client.name, client.peer, client.note}) {
    chained.low ^= hash_bytes(text, chained);
  }
  return chained.low;
}

KnownClient ClientNames::share_text(const ClientView& client) {
  auto found = shared_.find(client);
  if (found == shared_.end()) {
    auto identity = std::make_shared<const ClientIdentity>(ClientIdentity{
        std::string(client.name), std::string(client.peer), std::string(client.note)});
    found = shared_.emplace(std::move(identity), 0).first;
  }
  ++found->second;
  return {found->first, ClientFrom::texts};
}

void ClientNames::drop_text(const ClientIdentity& client) {
  const auto found = shared_.find(ClientView(client));
  if (--found->second == 0) shared_.erase(found);
}

void ClientNames::erase_entry(Hold& hold) {
  const auto found = of_holds_.find(&hold);
  drop({std::move(found->second), hold.client_from});
  of_holds_.erase(found);
  hold.client_from = ClientFrom::nowhere;
}

}  // namespace lockd
