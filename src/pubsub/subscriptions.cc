#include "pubsub/subscriptions.h"

#include <algorithm>
#include <cassert>

namespace lockd {
namespace {

constexpr std::string_view kAnyLink = "*.";  // as tokens of a chain
constexpr std::string_view kRestLink = ">.";

// A table of children gives memory back when it has room for this many times as many.
constexpr std::size_t kTableSlack = 16;

// How long the tokens are with which both begin.
std::size_t common_size(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  const std::string_view same = a.substr(0, static_cast<std::size_t>(differ - a.begin()));
  return same.rfind('.') + 1;  // npos + 1 is 0
}

}  // namespace

bool Subscriptions::add(SubscriberId subscriber, std::string_view pattern, std::string_view group) {
  assert(is_pattern(pattern));
  Audience& audience = open({pattern, group});
  Subscriber& owner = subscribers_.try_emplace(subscriber, subscriber, signals_).first->second;
  const auto [added, is_new] = owner.subscriptions.try_emplace(&audience, &owner);
  if (!is_new) return false;
  audience.members.push_back(&added->second);
  ++audience.size;
  ++size_;
  return true;
}

bool Subscriptions::remove(SubscriberId subscriber, std::string_view pattern,
                           std::string_view group) {
  const auto audience = audiences_.find(NameView(pattern, group));
  const auto owner = subscribers_.find(subscriber);
  if (audience == audiences_.end() || owner == subscribers_.end()) return false;
  auto& subscriptions = owner->second.subscriptions;
  const auto removed = subscriptions.find(&audience->second);
  if (removed == subscriptions.end()) return false;
  leave(audience->second, removed->second);
  subscriptions.erase(removed);
  if (subscriptions.empty()) subscribers_.erase(owner);
  return true;
}

std::size_t Subscriptions::remove_all(SubscriberId subscriber, std::size_t count_max) {
  const auto owner = subscribers_.find(subscriber);
  if (owner == subscribers_.end()) return 0;
  auto& subscriptions = owner->second.subscriptions;
  std::size_t removed = 0;
  for (; !subscriptions.empty() && removed < count_max; ++removed) {
    const auto first = subscriptions.begin();
    leave(*first->first, first->second);
    subscriptions.erase(first);
  }
  if (subscriptions.empty()) subscribers_.erase(owner);
  return removed;
}

bool Subscriptions::contains(SubscriberId subscriber, std::string_view pattern,
                             std::string_view group) const {
  const auto audience = audiences_.find(NameView(pattern, group));
  const auto owner = subscribers_.find(subscriber);
  if (audience == audiences_.end() || owner == subscribers_.end()) return false;
  // The map asks for a pointer to what it may change; it is only compared.
  return owner->second.subscriptions.contains(const_cast<Audience*>(&audience->second));
}

std::size_t Subscriptions::count(SubscriberId subscriber) const {
  const auto owner = subscribers_.find(subscriber);
  return owner == subscribers_.end() ? 0 : owner->second.subscriptions.size();
}

std::vector<AudienceStatus> Subscriptions::list(std::string_view pattern, std::string_view group,
                                                std::size_t count_max) const {
  std::vector<AudienceStatus> listed;
  auto at = audiences_.upper_bound(NameView(pattern, group));
  for (; at != audiences_.end() && listed.size() < count_max; ++at) {
    listed.push_back({at->first.first, at->first.second, at->second.size});
  }
  return listed;
}

// Matching.

void Subscriptions::begin_match(std::string_view channel) {
  assert(is_channel(channel) && !is_matching());
  ++signals_;
  match_.channel.assign(channel).push_back('.');
  match_.token = next_token(match_.channel);
  match_.rest = std::string_view(match_.channel).substr(match_.token.size());
  match_.matching.clear();
  match_.frontier.assign(1, &root_);
  match_.place = 0;
  match_.stage = Stage::nodes;
}

std::size_t Subscriptions::match_some(std::size_t visits_max, std::vector<SubscriberId>& out) {
  std::size_t visited = 0;
  for (; visited < visits_max && is_matching(); ++visited) {
    switch (match_.stage) {
      case Stage::nodes: visit_node(); break;
      case Stage::everyone: visit_everyone(out); break;
      case Stage::groups: visit_group(out); break;
      case Stage::over: break;
    }
  }
  return visited;
}

void Subscriptions::visit_node() {
  Match& m = match_;
  Node& node = *m.frontier[m.place];
  if (node.is_at_end()) {
    if (node.rest != nullptr) come_upon(*node.rest, node.rest->chain.size(), m.matching);
    for (const std::string_view token : {m.token, kAnyLink}) {
      Node* const child = child_of(node, token);
      if (child != nullptr) follow(*child, token.size());
    }
    be_done_with(node);
  } else {
    const std::string_view link = next_token(node.chain_ahead());
    const bool matches = link == m.token || link == kAnyLink;
    if (!matches || !follow(node, node.matched + link.size())) be_done_with(node);
  }
  if (++m.place < m.frontier.size()) return;
  m.frontier.swap(m.next);
  m.next.clear();
  m.place = 0;
  m.token = next_token(m.rest);
  m.rest.remove_prefix(m.token.size());
  if (!m.frontier.empty() && !m.token.empty()) return;
  m.matching.insert(m.matching.end(), m.frontier.begin(), m.frontier.end());
  begin(Stage::everyone);
}

// The first `matched` bytes of the node's chain match, with the token that is looked for. False if
// the channel ends there and the chain does not: the node cannot match then.
bool Subscriptions::follow(Node& node, std::size_t matched) {
  if (match_.rest.empty() && matched < node.chain.size()) return false;
  come_upon(node, matched, match_.next);
  return true;
}

void Subscriptions::visit_everyone(std::vector<SubscriberId>& out) {
  const Subscription* const member = match_.member;
  if (member == nullptr) return enter(match_.place + 1);
  match_.member = match_.matching[match_.place]->everyone->members.next(member);
  serve(*member, out);
}

// The first of a group that can be served goes to the back. So who was passed over is still the
// next, who comes is the last, and who leaves moves nobody.
void Subscriptions::visit_group(std::vector<SubscriberId>& out) {
  Node& node = *match_.matching[match_.place];
  Audience* const group = match_.group;
  if (group == nullptr) {
    enter(match_.place + 1);
    return be_done_with(node);
  }
  Subscription* const member = match_.member;
  if (member != nullptr) match_.member = group->members.next(member);
  const bool served = member != nullptr && serve(*member, out);
  if (served) {
    group->members.remove(member);
    group->members.push_back(member);
  }
  if (served || match_.member == nullptr) turn_to(node.groups.next(group));
}

void Subscriptions::begin(Stage stage) {
  match_.stage = match_.matching.empty() ? Stage::over : stage;
  if (is_matching()) enter(0);
}

// Turns to a node that matches or, behind the last one, to the next stage.
void Subscriptions::enter(std::size_t place) {
  const bool in_groups = match_.stage == Stage::groups;
  if (place == match_.matching.size()) {
    if (!in_groups) return begin(Stage::groups);
    match_.stage = Stage::over;
    return;
  }
  match_.place = place;
  const Node& node = *match_.matching[place];
  if (in_groups) return turn_to(node.groups.front());
  match_.member = node.everyone == nullptr ? nullptr : node.everyone->members.front();
}

void Subscriptions::turn_to(Audience* group) {
  match_.group = group;
  match_.member = group == nullptr ? nullptr : group->members.front();
}

void Subscriptions::come_upon(Node& node, std::size_t matched, std::vector<Node*>& nodes) {
  node.is_matched = true;
  node.matched = static_cast<std::uint16_t>(matched);
  node.place = static_cast<std::uint32_t>(nodes.size());
  nodes.push_back(&node);
}

void Subscriptions::be_done_with(Node& node) {
  node.is_matched = false;
  prune(&node);
}

bool Subscriptions::serve(const Subscription& subscription, std::vector<SubscriberId>& out) {
  Subscriber& subscriber = *subscription.subscriber;
  if (subscriber.served == signals_) return false;
  subscriber.served = signals_;
  out.push_back(subscriber.id);
  return true;
}

// Audiences and nodes.

Subscriptions::Audience& Subscriptions::open(const NameView& name) {
  const auto known = audiences_.find(name);
  if (known != audiences_.end()) return known->second;
  const auto opened = audiences_.try_emplace(Name(name)).first;
  Audience& audience = opened->second;
  audience.name = &opened->first;
  audience.node = &grow(name.first);
  if (name.second.empty()) {
    audience.node->everyone = &audience;
  } else {
    audience.node->groups.push_back(&audience);
  }
  return audience;
}

void Subscriptions::leave(Audience& audience, Subscription& subscription) {
  if (match_.member == &subscription) match_.member = audience.members.next(&subscription);
  audience.members.remove(&subscription);
  --size_;
  if (--audience.size == 0) close(audience);
}

void Subscriptions::close(Audience& audience) {
  Node* node = audience.node;
  if (match_.group == &audience) turn_to(node->groups.next(&audience));
  if (node->everyone == &audience) {
    node->everyone = nullptr;
  } else {
    node->groups.remove(&audience);
  }
  audiences_.erase(audiences_.find(*audience.name));
  prune(node);
}

Subscriptions::Node& Subscriptions::grow(std::string_view pattern) {
  std::string chain(pattern);
  chain.push_back('.');
  const bool has_rest = chain == kRestLink || chain.ends_with(".>.");
  std::string_view ahead = chain;
  if (has_rest) ahead.remove_suffix(kRestLink.size());
  Node* node = &root_;
  while (!ahead.empty()) {
    Node* child = child_of(*node, next_token(ahead));
    if (child == nullptr) {
      node = &adopt(std::make_unique<Node>(node, ahead));
      break;
    }
    const std::size_t shared = common_size(child->chain, ahead);
    node = shared < child->chain.size() ? &split(*child, shared) : child;
    ahead.remove_prefix(shared);
  }
  if (!has_rest) return *node;
  return node->rest != nullptr ? *node->rest : adopt(std::make_unique<Node>(node, kRestLink));
}

Subscriptions::Node* Subscriptions::child_of(Node& parent, std::string_view token) {
  if (token == kAnyLink) return parent.any.get();
  const auto literal = literals_.find(Edge{&parent, token});
  return literal == literals_.end() ? nullptr : literal->node.get();
}

// Precondition: the parent has no child with this first token.
Subscriptions::Node& Subscriptions::adopt(std::unique_ptr<Node> child) {
  Node& node = *child;
  ++nodes_;
  ++node.parent->children;
  if (node.first_token() == kAnyLink) {
    node.parent->any = std::move(child);
  } else if (node.first_token() == kRestLink) {
    node.parent->rest = std::move(child);
  } else {
    literals_.insert(Child{std::move(child)});
  }
  return node;
}

std::unique_ptr<Subscriptions::Node> Subscriptions::release(Node& child) {
  --nodes_;
  --child.parent->children;
  if (child.parent->any.get() == &child) return std::move(child.parent->any);
  if (child.parent->rest.get() == &child) return std::move(child.parent->rest);
  const auto found = literals_.find(edge_to(child));
  std::unique_ptr<Node> owned = std::move(found->node);
  literals_.erase(found);
  if (literals_.size() < literals_.bucket_count() / kTableSlack) literals_.rehash(0);
  return owned;
}

// Moves the first `size` bytes of the node's chain to a new node above it. A match that has read no
// further than that part continues at the new node.
Subscriptions::Node& Subscriptions::split(Node& node, std::size_t size) {
  std::unique_ptr<Node> lower = release(node);
  Node& upper = adopt(std::make_unique<Node>(node.parent, node.chain.substr(0, size)));
  lower->chain = node.chain.substr(size);
  lower->parent = &upper;
  adopt(std::move(lower));
  if (!node.is_matched) return upper;
  if (node.matched >= size) {
    node.matched = static_cast<std::uint16_t>(node.matched - size);
    return upper;
  }
  for (std::vector<Node*>* const nodes : {&match_.frontier, &match_.next}) {
    if (node.place < nodes->size() && (*nodes)[node.place] == &node) (*nodes)[node.place] = &upper;
  }
  upper.is_matched = true;
  upper.matched = node.matched;
  upper.place = node.place;
  node.is_matched = false;
  return upper;
}

// Frees the node if nothing needs it, and then its parent likewise.
void Subscriptions::prune(Node* node) {
  while (node != &root_ && !node->is_needed()) {
    Node* const parent = node->parent;
    release(*node);
    node = parent;
  }
}

}  // namespace lockd
