// The sessions of one host that watch what happens to keys, each those with its prefix.
//
// They are found by prefix: the prefixes are a radix tree, and the way of a key through it passes
// those who watch the key, and nobody else. So an event costs the length of its key and those whom
// it concerns, however many watch, and whatever prefixes they have chosen.
//
// A turn has a budget. What it does not get to is for the next turns; what the feed has overwritten
// by then was missed, by everybody here, and so is what somebody had no room for. Everybody is told
// how many it missed with the next event that it is told of.
//
// 1. Every node but the root is somebody's prefix, or has two children or more.
// 2. While somebody watches, the feed keeps what has happened since.
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
  // One event goes to one watcher, which had missed so many before it. False: it has no room.
  using Tell =
      std::function<bool(SessionId watcher, const KeyEventJson& event, std::uint64_t missed)>;
  struct Now {
    Time time{};
    std::int64_t unix_ms = 0;
  };

  explicit EventWatchers(EventFeed& feed) : feed_(feed) {}
  EventWatchers(const EventWatchers&) = delete;
  EventWatchers& operator=(const EventWatchers&) = delete;

  // Watches from now on, and is told of those keys alone that it may see. False when as many watch,
  // here and elsewhere, as the feed has room for. Precondition: it does not watch yet.
  bool add(SessionId watcher, std::string_view prefix, PermitPtr confined_to = nullptr);
  void remove(SessionId watcher);  // if it watches

  // Tells of what has happened and `may_tell` lets pass, as far as the budget of a turn goes. True
  // when there is more. Precondition: `tell` adds and removes nobody.
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
  std::size_t told_ = 0;                             // of them
  std::uint64_t place_ = 0;                          // in the feed, of the next to be told
};

}  // namespace lockd
