#include "pubsub/subscriptions.h"

#include <cassert>

namespace lockd {

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
  match_.channel = channel;
  match_.tokens = Tokens(match_.channel);
  match_.tokens.next(&match_.token);
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
  come_upon(node.rest.get(), m.matching);
  const auto literal = literals_.find(Edge{&node, m.token});
  if (literal != literals_.end()) come_upon(literal->get(), m.next);
  come_upon(node.any.get(), m.next);
  be_done_with(node);
  if (++m.place < m.frontier.size()) return;
  m.frontier.swap(m.next);
  m.next.clear();
  m.place = 0;
  if (!m.frontier.empty() && m.tokens.next(&m.token)) return;
  m.matching.insert(m.matching.end(), m.frontier.begin(), m.frontier.end());
  begin(Stage::everyone);
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

void Subscriptions::come_upon(Node* node, std::vector<Node*>& nodes) {
  if (node == nullptr) return;
  node->is_matched = true;
  nodes.push_back(node);
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
