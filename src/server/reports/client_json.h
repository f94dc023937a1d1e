// Who a client is, and how much it has of a key, as every document of the server shows it.
//
// `holder` is what it always was: a name, or "tcp:<session>". At the end of what has a holder is
// what is known of its client: `client_id` of a session, `client` as it names itself, `peer` and
// `note`. What is not known is left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "lockd/types.h"
#include "server/client_registry.h"

namespace lockd {

// A client that has not said who it is has the address of its connection, if that is known.
inline const std::string& peer_of(const ClientIdentity& client,
                                  const std::optional<ClientOrigin>& origin) {
  return client.peer.empty() && origin ? origin->peer : client.peer;
}

// `Held` has a session and a client: a HoldStatus, a WaiterStatus, a KeyEvent. One that
// has not said who it is is shown with the address that `clients` knows; null: none.
template <typename Held>
void add_client(JsonObject& json, const Held& held, const ClientRegistry* clients) {
  static const ClientIdentity nobody;
  const ClientIdentity& client = held.client == nullptr ? nobody : *held.client;
  if (held.session != 0) json.add("client_id", held.session);
  json.add_if_known("client", client.name);
  const bool may_be_known = held.session != 0 && clients != nullptr;
  const auto origin = may_be_known ? clients->find(held.session) : std::nullopt;
  json.add_if_known("peer", peer_of(client, origin));
  json.add_if_known("note", client.note);
  if (origin) json.add_if_known("token_name", origin->token_name);
}

// "tcp:b/17" of a client of another server, which is known by what it is there.
template <typename Held>
std::string holder_text(const Held& held, const ClientRegistry& clients) {
  if (held.session == 0) return std::string(held.holder);
  const auto origin = clients.find(held.session);
  const bool is_forwarded = origin && !origin->forwarded_as.empty();
  return is_forwarded ? "tcp:" + origin->forwarded_as : std::string(held.holder);
}

inline std::string_view kind_name(Kind kind) { return kind == Kind::lock ? "lock" : "semaphore"; }
inline std::string_view mode_name(Mode mode) {
  return mode == Mode::shared ? "shared" : "exclusive";
}

// What is not as it usually is: `mode` of a lock that is shared, `permits` of a semaphore if there
// are several. `Held` is a HoldStatus, a WaiterStatus, a KeyEvent or a KeyItem.
template <typename Held>
void add_share(JsonObject& json, const Held& held) {
  if (held.mode != Mode::exclusive) json.add("mode", mode_name(held.mode));
  if (held.permits > 1) json.add("permits", held.permits);
}

// A client that is connected: the members by which it is known, to which others may be added.
inline JsonObject client_json(const ClientStatus& client) {
  JsonObject json;
  json.add("client_id", client.id);
  json.add_if_known("forwarded_as", client.forwarded_as);
  json.add("protocol", client.protocol == Protocol::line ? "line" : "http");
  json.add("peer", client.peer);
  if (client.client != nullptr) json.add("client", client.client->name);
  if (client.client != nullptr) json.add_if_known("note", client.client->note);
  json.add_if_known("token_name", client.token_name);
  return json;
}

}  // namespace lockd
