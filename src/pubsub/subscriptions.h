// Who listens to what: finds the subscribers that a signal goes to. For SignalHub, which adds the
// lock and the delivery; here there is neither, nor a clock, nor chance.
//
// A subscription is a pattern, a group or none, and a subscriber. The subscriptions with the same
// pattern and group are an audience. A signal goes to every member of a matching audience without a
// group; then to one member of each matching audience with one, whoever was served longest ago.
// Nobody gets two copies: a group passes over those already served, and serves none when all are.
//
// The patterns are a trie by tokens, in which a node is a chain of tokens that no branch leaves: a
// pattern adds three nodes at most, however many tokens it has. A match follows, token by token,
// every branch that matches so far: it costs a step for each path that matches a beginning of the
// channel, and nothing for the others, however many there are. It visits audiences in one order:
// patterns ending in `>` first, the shorter before the longer; among equals, a literal token before
// `*`; groups by age.
//
// A match may be made in pieces, and subscriptions may come and go between them. What a match has
// come upon stays until it is done with it, or moves it on as it goes. Whoever is subscribed
// throughout is served as if nobody else had come or gone. A subscriber that comes meanwhile is not
// served: its signals are those that begin after it.
//
// 1. Every audience has members.
// 2. Every node but the root leads to an audience, or is one that a match is not done with.
// 3. Every subscriber has subscriptions.
// So a pattern without subscribers takes no memory. The two parts of a chain that was split are not
// joined again when the other branch goes; they are nodes, and nodes have a limit.
//
// Not thread-safe.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/list.h"
#include "base/pattern.h"

namespace lockd {

using SubscriberId = std::uint64_t;

// How many listen to a pattern in a group; no group is an empty one.
struct AudienceStatus {
  std::string pattern;
  std::string group;
  std::size_t listeners = 0;

  friend bool operator==(const AudienceStatus&, const AudienceStatus&) = default;
};

class Subscriptions {
 public:
  Subscriptions() = default;
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  // False if it was there. Precondition: is_pattern(pattern). An empty group is none.
  bool add(SubscriberId subscriber, std::string_view pattern, std::string_view group);
  // False if it was not there.
  bool remove(SubscriberId subscriber, std::string_view pattern, std::string_view group);
  // Removes all that the subscriber has, or `count_max` of it. Returns how many that were: fewer
  // than `count_max` when nothing is left.
  std::size_t remove_all(SubscriberId subscriber, std::size_t count_max = SIZE_MAX);

  bool contains(SubscriberId subscriber, std::string_view pattern, std::string_view group) const;
  std::size_t count(SubscriberId subscriber) const;
  std::size_t size() const { return size_; }  // all subscriptions

  // Begins to find the subscribers that a signal on `channel` goes to.
  // Precondition: is_channel(channel), and no match is under way.
  void begin_match(std::string_view channel);
  bool is_matching() const { return match_.stage != Stage::over; }
  // Appends those that it finds, each once in the whole match, and moves the groups on. Returns how
  // many nodes and subscriptions it looked at, whoever is served: `visits_max`, or fewer when the
  // match is over.
  std::size_t match_some(std::size_t visits_max, std::vector<SubscriberId>& out);

  // The first `count_max` audiences behind (pattern, group), in that order; ("", "") is before all.
  // So a listing can be made in pieces: what is there throughout is in it exactly once.
  std::vector<AudienceStatus> list(std::string_view pattern, std::string_view group,
                                   std::size_t count_max) const;

  // The size of the trie, the root aside. 0 when there are no subscriptions.
  std::size_t nodes() const { return nodes_; }

 private:
  struct Node;
  struct Subscriber;
  using Name = std::pair<std::string, std::string>;  // a pattern and a group
  using NameView = std::pair<std::string_view, std::string_view>;

  struct Subscription {
    explicit Subscription(Subscriber* subscriber) : subscriber(subscriber) {}

    Subscriber* const subscriber;
    ListHook<Subscription> peers;  // the audience's
  };

  struct Audience {
    const Name* name = nullptr;
    Node* node = nullptr;
    std::size_t size = 0;
    List<Subscription, &Subscription::peers> members;  // in a group: served longest ago comes first
    ListHook<Audience> peers;                          // the node's groups
  };

  struct Node {
    Node(Node* parent, std::string_view chain) : parent(parent), chain(chain) {}
    bool is_needed() const {
      return children != 0 || everyone != nullptr || !groups.empty() || is_matched;
    }

    std::string_view first_token() const { return next_token(chain); }
    // What a match has yet to compare of the chain.
    std::string_view chain_ahead() const { return std::string_view(chain).substr(matched); }
    bool is_at_end() const { return matched == chain.size(); }

    Node* parent;
    std::string chain;  // its tokens, each with a dot behind it: "eu.*."
    std::size_t children = 0;
    // By a match that is not done with this node: how many bytes of `chain`, and the node's place
    // in the frontier.
    bool is_matched = false;
    std::uint16_t matched = 0;
    std::uint32_t place = 0;
    std::unique_ptr<Node> any;   // the child whose first token is `*`
    std::unique_ptr<Node> rest;  // the child `>`; those that begin with a literal are in literals_
    Audience* everyone = nullptr;
    List<Audience, &Audience::peers> groups;  // the oldest first
  };

  struct Subscriber {
    Subscriber(SubscriberId id, std::uint64_t served) : id(id), served(served) {}

    const SubscriberId id;
    std::uint64_t served;  // the last signal that went to it, or began before it came
    std::map<Audience*, Subscription> subscriptions;
  };

  // One table for the children of all nodes: a node is small, and there are many.
  struct Edge {
    const Node* parent;
    std::string_view token;  // the child's first, with its dot
    bool operator==(const Edge&) const = default;
  };
  struct Child {
    mutable std::unique_ptr<Node> node;  // moved out when the child is about to be erased
  };
  struct Hash {
    using is_avalanching = void;
    using is_transparent = void;
    std::size_t operator()(const Edge& e) const { return hash_bytes(e.token, key.at(e.parent)); }
    std::size_t operator()(const Child& c) const { return (*this)(edge_to(*c.node)); }

    HashKey key = HashKey::random();  // clients choose the tokens
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Child& a, const Child& b) const {
      return edge_to(*a.node) == edge_to(*b.node);
    }
    bool operator()(const Edge& a, const Child& b) const { return a == edge_to(*b.node); }
    bool operator()(const Child& a, const Edge& b) const { return edge_to(*a.node) == b; }
  };
  static Edge edge_to(const Node& node) { return {node.parent, node.first_token()}; }
  // The first token of a chain, with its dot.
  static std::string_view next_token(std::string_view chain) {
    return chain.substr(0, chain.find('.') + 1);
  }

  struct Before {
    using is_transparent = void;
    bool operator()(const NameView& a, const NameView& b) const { return a < b; }
  };
  using Audiences = std::map<Name, Audience, Before>;

  Audience& open(const NameView& name);
  void leave(Audience& audience, Subscription& subscription);
  void close(Audience& audience);
  Node& grow(std::string_view pattern);
  Node* child_of(Node& parent, std::string_view token);
  Node& adopt(std::unique_ptr<Node> child);
  std::unique_ptr<Node> release(Node& child);
  Node& split(Node& node, std::size_t size);
  void prune(Node* node);

  enum class Stage : std::uint8_t {
    over,
    nodes,     // finds those whose patterns match
    everyone,  // serves their audiences without a group
    groups,    // serves one of each group
  };

  struct Match {
    Stage stage = Stage::over;
    std::string channel{};     // as a chain
    std::string_view rest{};   // of the channel, behind `token`
    std::string_view token{};  // that is looked for in and behind the frontier

    // Kept from match to match, which so allocates nothing.
    std::vector<Node*> frontier{};  // whose paths match the tokens so far, up to their `matched`
    std::vector<Node*> next{};      // likewise, with `token`
    std::vector<Node*> matching{};

    std::size_t place = 0;           // in the frontier, then in `matching`
    Audience* group = nullptr;       // of the node there
    Subscription* member = nullptr;  // of the group, or of everyone there: the next to be visited
  };

  void visit_node();
  void visit_everyone(std::vector<SubscriberId>& out);
  void visit_group(std::vector<SubscriberId>& out);
  void begin(Stage stage);
  void enter(std::size_t place);
  void turn_to(Audience* group);
  bool follow(Node& node, std::size_t matched);
  static void come_upon(Node& node, std::size_t matched, std::vector<Node*>& nodes);
  void be_done_with(Node& node);
  bool serve(const Subscription& subscription, std::vector<SubscriberId>& out);

  Node root_{nullptr, ""};
  boost::unordered_flat_set<Child, Hash, Equal> literals_;
  std::size_t nodes_ = 0;

  Audiences audiences_;
  std::size_t size_ = 0;  // subscriptions
  std::unordered_map<SubscriberId, Subscriber> subscribers_;
  std::uint64_t signals_ = 0;  // how many matches have begun
  Match match_;
};

}  // namespace lockd
