// The client identities of a table's holds, as the clients gave them.
//
// A hold without an identity costs nothing here: one byte in the hold says whether it has one. An
// identity that a session gave is shared with the session. An identity from a request or a journal
// is stored once for all holds and places with the same texts, until the last of them ends.
//
// No rule of the table reads an identity. Not thread-safe.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "core/key.h"
#include "lockd/types.h"

namespace lockd {

class ClientNames {
 public:
  // The hash is keyed because clients choose the texts.
  explicit ClientNames(const HashKey& hash_key) : shared_(0, Hash{hash_key}) {}

  // The identity that the session gave, if any.
  static KnownClient of_session(const Session* session) {
    if (session == nullptr || session->client == nullptr) return {};
    return {session->client, ClientFrom::session};
  }
  // The identity in a request or a record. The caller passes each non-empty result to keep() or
  // drop().
  KnownClient share(const ClientView& client) {
    return client.empty() ? KnownClient{} : share_text(client);
  }
  void drop(KnownClient client) {
    if (client.from == ClientFrom::texts) drop_text(*client.identity);
  }

  // Precondition: the hold has no identity yet.
  void keep(Hold& hold, KnownClient client) {
    if (client.from == ClientFrom::nowhere) return;
    hold.client_from = client.from;
    of_holds_.emplace(&hold, std::move(client.identity));
  }
  void forget(Hold& hold) {
    if (hold.client_from != ClientFrom::nowhere) erase_entry(hold);
  }

  // Null if the hold has no identity.
  ClientRef of(const Hold& hold) const {
    return hold.client_from == ClientFrom::nowhere ? nullptr : of_holds_.find(&hold)->second;
  }
  ClientView view_of(const Hold& hold) const {
    if (hold.client_from == ClientFrom::nowhere) return {};
    return *of_holds_.find(&hold)->second;
  }

  std::size_t holds() const { return of_holds_.size(); }  // holds that have an identity
  std::size_t texts() const { return shared_.size(); }    // identities shared by content
  bool has(const Hold& hold) const { return of_holds_.contains(&hold); }

 private:
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    std::size_t operator()(const ClientView& client) const;
    std::size_t operator()(const ClientRef& client) const { return (*this)(ClientView(*client)); }

    HashKey key;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const ClientRef& a, const ClientRef& b) const { return a == b; }
    bool operator()(const ClientView& a, const ClientRef& b) const { return a == ClientView(*b); }
    bool operator()(const ClientRef& a, const ClientView& b) const { return ClientView(*a) == b; }
  };

  KnownClient share_text(const ClientView& client);
  void drop_text(const ClientIdentity& client);
  void erase_entry(Hold& hold);

  boost::unordered_flat_map<const Hold*, ClientRef> of_holds_;
  // The number of holds and places that share each identity. The use_count() of a ClientRef cannot
  // serve, because listings on other threads hold copies.
  boost::unordered_flat_map<ClientRef, std::size_t, Hash, Equal> shared_;
};

}  // namespace lockd
