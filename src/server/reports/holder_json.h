// Who holds something or waits for it, as every document of the server shows it.
//
// `holder` is what it always was: a name, or "tcp:<session>". Beside it is what is known of the
// client: `client_id` of a session, `client` as it names itself, `peer` and `note`. What is not
// known is left out.
#pragma once

#include <string_view>

#include "base/json_text.h"
#include "lockd/types.h"
#include "server/client_registry.h"

namespace lockd {

// The members beside `holder`. A client that has not said who it is is shown with the address that
// `clients` knows; null: nobody is known there.
inline void add_client(JsonObject& json, SessionId session, const ClientIdentity* client,
                       const ClientRegistry* clients) {
  if (session != 0) json.add("client_id", session);
  if (client != nullptr && !client->name.empty()) json.add("client", client->name);
  if (client != nullptr && !client->peer.empty()) {
    json.add("peer", client->peer);
  } else if (session != 0 && clients != nullptr) {
    const auto origin = clients->find(session);
    if (origin && !origin->peer.empty()) json.add("peer", origin->peer);
  }
  if (client != nullptr && !client->note.empty()) json.add("note", client->note);
}

// A client that is connected: the members by which it is known, to which others may be added.
inline JsonObject client_json(const ClientStatus& client) {
  JsonObject json;
  json.add("client_id", client.id);
  json.add("protocol", client.protocol == Protocol::line ? "line" : "http");
  json.add("peer", client.peer);
  if (client.client != nullptr) json.add("client", client.client->name);
  if (client.client != nullptr && !client.client->note.empty()) {
    json.add("note", client.client->note);
  }
  if (!client.token_name.empty()) json.add("token_name", client.token_name);
  return json;
}

// `Held` has who, by `holder`, `session` and `client`: a HoldStatus, a Conflict, a KeyEvent.
template <typename Held>
void add_holder(JsonObject& json, const Held& held, const ClientRegistry* clients) {
  json.add("holder", held.holder);
  add_client(json, held.session, held.client.get(), clients);
}

}  // namespace lockd
