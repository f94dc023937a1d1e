// EventWatchers: the sessions of one host that watch key events, each for keys with its prefix.
//
// The prefixes are a radix tree. The way of a key through the tree passes exactly the sessions that
// watch the key, so an event costs the length of its key and its watchers, however many sessions
// watch other prefixes.
//
// A turn has a budget; later turns handle the rest. Every watcher misses the events that the feed
// has overwritten by then, and a watcher without room for an event misses that one. The next event
// that a watcher receives says how many it missed.
//
// 1. Every node but the root is the prefix of a watcher, or has at least two children.
// 2. While a session watches, the feed keeps the events that happened since.
//
// Used by the thread of its host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/list.h"
#include "lockd/types.h"
#include "server/access/permit.h"
#include "server/session/event_feed.h"

namespace lockd {

class EventWatchers {
 public:
  // Sends one event to one watcher, which missed `missed` events before it. False: it has no room.
  using Tell =
      std::function<bool(SessionId watcher, const KeyEventJson& event, std::uint64_t missed)>;
  struct Now {
    Time time{};
    std::int64_t unix_ms = 0;
  };

  explicit EventWatchers(EventFeed& feed) : feed_(feed) {}
  EventWatchers(const EventWatchers&) = delete;
  EventWatchers& operator=(const EventWatchers&) = delete;

  // The session watches from now on, as far as it may see keys. False: the feed has as many
  // watchers as it may have, on all hosts. Precondition: the session does not watch yet.
  bool add(SessionId watcher, std::string_view prefix, PermitPtr confined_to = nullptr);
  void remove(SessionId watcher);  // if it watches

  // Sends the events that `may_tell` lets pass, as far as the budget of a turn allows. True: there
  // are more. Precondition: `tell` adds and removes no watcher.
  bool tell_some(Now now, const EventFeed::MayTell& may_tell, const Tell& tell);

  // The size of the tree, the root aside.
  std::size_t nodes() const { return nodes_; }

 private:
  struct Node;

  struct Watcher {
    SessionId id = 0;
    std::uint64_t from = 0;  // a place in the feed
    std::uint64_t missed = 0;
    Node* node = nullptr;
    PermitPtr confined_to{};    // null: it may see all keys
    ListHook<Watcher> peers{};  // with the same prefix
  };

  struct Node {
    Node* parent = nullptr;
    std::string label{};  // what its prefix has more than its parent's
    List<Watcher, &Watcher::peers> watchers{};
    std::map<char, std::unique_ptr<Node>> children{};  // by the first byte of their labels
  };

  Node& node_of(std::string_view prefix);
  Node& add_child(Node& parent, std::string_view label);
  Node& split(Node& node, std::size_t size);
  void prune(Node* node);
  static const Node* next_node(const Node& node, std::string_view& rest);

  bool read_some(const EventFeed::MayTell& may_tell);
  void count_missed(std::uint64_t from, std::uint64_t to);
  std::size_t tell_one(const EventFeed::Entry& entry, Now now, const Tell& tell);

  EventFeed& feed_;
  Node root_;
  std::size_t nodes_ = 0;
  std::unordered_map<SessionId, Watcher> watchers_;  // which stay where they are
  EventFeed::Entries entries_;                       // that were read
  std::size_t told_ = 0;                             // how many of entries_ were sent
  std::uint64_t place_ = 0;                          // in the feed, of the next event to send
};

}  // namespace lockd
