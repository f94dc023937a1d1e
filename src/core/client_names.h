// Who the clients of a table's holds say they are.
//
// A hold without a client costs nothing: a byte in it says whether there is anything to find here.
// What a session says of itself is shared with the session as it is. What comes with a request, or
// from a journal, is kept once however many holds and places say the same, until the last of them
// has gone.
//
// No rule reads any of it. Not thread-safe.
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
  // Clients choose the texts.
  explicit ClientNames(const HashKey& hash_key) : shared_(0, Hash{hash_key}) {}

  // Of a session that may have said who it is: null is one that has not.
  static KnownClient of_session(const Session* session) {
    if (session == nullptr || session->client == nullptr) return {};
    return {session->client, ClientFrom::session};
  }
  // Of a request or a record: nobody if it says nothing. Each that is somebody is kept by a hold,
  // or dropped.
  KnownClient share(const ClientView& client) {
    return client.empty() ? KnownClient{} : share_text(client);
  }
  void drop(KnownClient client) {
    if (client.from == ClientFrom::texts) drop_text(*client.identity);
  }

  // Precondition: the hold has none yet.
  void keep(Hold& hold, KnownClient client) {
    if (client.from == ClientFrom::nowhere) return;
    hold.client_from = client.from;
    of_holds_.emplace(&hold, std::move(client.identity));
  }
  void forget(Hold& hold) {
    if (hold.client_from != ClientFrom::nowhere) take_from(hold);
  }

  // Null if it has none.
  ClientRef of(const Hold& hold) const {
    return hold.client_from == ClientFrom::nowhere ? nullptr : of_holds_.find(&hold)->second;
  }
  ClientView view_of(const Hold& hold) const {
    if (hold.client_from == ClientFrom::nowhere) return {};
    return *of_holds_.find(&hold)->second;
  }

  std::size_t holds() const { return of_holds_.size(); }  // that have a client
  std::size_t texts() const { return shared_.size(); }    // that are shared by content
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
  void take_from(Hold& hold);

  boost::unordered_flat_map<const Hold*, ClientRef> of_holds_;
  // How many holds and places share each. Others may have copies, so a ClientRef's own count, which
  // they change on threads of theirs, does not tell.
  boost::unordered_flat_map<ClientRef, std::size_t, Hash, Equal> shared_;
};

}  // namespace lockd
