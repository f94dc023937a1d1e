#include "pubsub/subscriptions.h"

#include <cassert>

#include "base/pattern.h"

namespace lockd {

bool Subscriptions::add(SubscriberId subscriber, std::string_view pattern, std::string_view group) {
  assert(is_pattern(pattern));
  Audience& audience = open({pattern, group});
  Subscriber& owner = subscribers_.try_emplace(subscriber, subscriber).first->second;
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

bool Subscriptions::remove_all(SubscriberId subscriber, std::size_t count_max) {
  const auto owner = subscribers_.find(subscriber);
  if (owner == subscribers_.end()) return true;
  auto& subscriptions = owner->second.subscriptions;
  for (; !subscriptions.empty() && count_max > 0; --count_max) {
    const auto first = subscriptions.begin();
    leave(*first->first, first->second);
    subscriptions.erase(first);
  }
  if (!subscriptions.empty()) return false;
  subscribers_.erase(owner);
  return true;
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

std::size_t Subscriptions::match(std::string_view channel, std::vector<SubscriberId>& out) {
  assert(is_channel(channel));
  ++signals_;
  std::size_t visited = find_matching(channel);
  for (const Node* node : matching_) {
    if (node->everyone == nullptr) continue;
    const auto& members = node->everyone->members;
    for (Subscription* s = members.front(); s != nullptr; s = members.next(s)) serve(*s, out);
    visited += node->everyone->size;
  }
  for (const Node* node : matching_) {
    for (Audience* a = node->groups.front(); a != nullptr; a = node->groups.next(a)) {
      visited += serve_one(*a, out);
    }
  }
  return visited;
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

// All nodes whose patterns match. The frontier is those whose paths match the tokens so far.
std::size_t Subscriptions::find_matching(std::string_view channel) {
  std::size_t visited = 0;
  matching_.clear();
  frontier_.assign(1, &root_);
  Tokens tokens(channel);
  for (std::string_view token; !frontier_.empty() && tokens.next(&token); frontier_.swap(next_)) {
    next_.clear();
    visited += frontier_.size();
    for (const Node* node : frontier_) {
      if (node->rest != nullptr) matching_.push_back(node->rest.get());
      const auto literal = literals_.find(Edge{node, token});
      if (literal != literals_.end()) next_.push_back(literal->get());
      if (node->any != nullptr) next_.push_back(node->any.get());
    }
  }
  matching_.insert(matching_.end(), frontier_.begin(), frontier_.end());
  return visited;
}

// The first that can be served goes to the back. So who was passed over is still the next, who
// comes is the last, and who leaves moves nobody.
std::size_t Subscriptions::serve_one(Audience& group, std::vector<SubscriberId>& out) {
  auto& members = group.members;
  std::size_t visited = 0;
  for (Subscription* s = members.front(); s != nullptr; s = members.next(s)) {
    ++visited;
    if (!serve(*s, out)) continue;
    members.remove(s);
    members.push_back(s);
    break;
  }
  return visited;
}

bool Subscriptions::serve(const Subscription& subscription, std::vector<SubscriberId>& out) {
  Subscriber& subscriber = *subscription.subscriber;
  if (subscriber.served == signals_) return false;
  subscriber.served = signals_;
  out.push_back(subscriber.id);
  return true;
}

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
  --size_;
  audience.members.remove(&subscription);
  if (--audience.size == 0) close(audience);
}

void Subscriptions::close(Audience& audience) {
  Node* node = audience.node;
  if (node->everyone == &audience) {
    node->everyone = nullptr;
  } else {
    node->groups.remove(&audience);
  }
  audiences_.erase(audiences_.find(*audience.name));
  prune(node);
}

Subscriptions::Node& Subscriptions::grow(std::string_view pattern) {
  Node* node = &root_;
  Tokens tokens(pattern);
  for (std::string_view token; tokens.next(&token);) node = &grow(*node, token);
  return *node;
}

Subscriptions::Node& Subscriptions::grow(Node& parent, std::string_view token) {
  const bool is_literal = token != kAnyToken && token != kAnyTokens;
  std::unique_ptr<Node>* place = token == kAnyToken ? &parent.any : &parent.rest;
  if (is_literal) {
    const auto known = literals_.find(Edge{&parent, token});
    if (known != literals_.end()) return **known;
  } else if (*place != nullptr) {
    return **place;
  }
  ++parent.children;
  ++nodes_;
  auto node = std::make_unique<Node>(&parent, token);
  if (is_literal) return **literals_.insert(std::move(node)).first;
  *place = std::move(node);
  return **place;
}

// Frees the node if nothing needs it, and then its parent likewise.
void Subscriptions::prune(Node* node) {
  while (node != &root_ && !node->is_needed()) {
    Node* parent = node->parent;
    if (parent->any.get() == node) {
      parent->any.reset();
    } else if (parent->rest.get() == node) {
      parent->rest.reset();
    } else {
      literals_.erase(literals_.find(edge_to(*node)));
    }
    --parent->children;
    --nodes_;
    node = parent;
  }
}

}  // namespace lockd
