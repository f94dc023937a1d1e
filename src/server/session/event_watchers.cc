#include "server/session/event_watchers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/reports/report.h"

namespace lockd {
namespace {

// The budget of a turn, in nodes and watchers visited: about a millisecond. Writing an event as
// JSON costs as much as kCostOfJson of them. An event that was begun reaches all of its watchers.
constexpr std::size_t kCostPerTurn = 16 * 1024;
constexpr std::size_t kCostOfJson = 16;

std::size_t common_size(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

// They come and go.

bool EventWatchers::add(SessionId id, std::string_view prefix, PermitPtr confined_to) {
  const std::optional<std::uint64_t> from = feed_.add_watcher();
  if (!from) return false;
  if (watchers_.empty()) place_ = *from;
  // No key is that long: whatever follows, it matches nothing.
  Node& node = node_of(prefix.substr(0, kKeySizeMax + 1));
  Watcher& watcher = watchers_[id] = {
      .id = id, .from = *from, .node = &node, .confined_to = std::move(confined_to)};
  node.watchers.push_back(&watcher);
  return true;
}

void EventWatchers::remove(SessionId id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  Node* const node = found->second.node;
  node->watchers.remove(&found->second);
  prune(node);
  watchers_.erase(found);
  if (watchers_.empty()) {
    entries_.clear();
    told_ = 0;
  }
  feed_.remove_watcher();
}

// The tree.

EventWatchers::Node& EventWatchers::node_of(std::string_view prefix) {
  Node* node = &root_;
  while (!prefix.empty()) {
    const auto found = node->children.find(prefix.front());
    if (found == node->children.end()) return add_child(*node, prefix);
    Node& child = *found->second;
    const std::size_t common = common_size(child.label, prefix);
    node = common == child.label.size() ? &child : &split(child, common);
    prefix.remove_prefix(common);
  }
  return *node;
}

EventWatchers::Node& EventWatchers::add_child(Node& parent, std::string_view label) {
  auto child = std::make_unique<Node>();
  child->parent = &parent;
  child->label = label;
  ++nodes_;
  return *(parent.children[label.front()] = std::move(child));
}

// Puts a node above it that has the first `size` bytes of its label.
EventWatchers::Node& EventWatchers::split(Node& node, std::size_t size) {
  std::unique_ptr<Node>& link = node.parent->children[node.label.front()];
  std::unique_ptr<Node> lower = std::move(link);
  link = std::make_unique<Node>();
  link->parent = node.parent;
  link->label = node.label.substr(0, size);
  node.parent = link.get();
  node.label.erase(0, size);
  Node& upper = *link;
  upper.children[node.label.front()] = std::move(lower);
  ++nodes_;
  return upper;
}

// From a node that may be needed no more, upward.
void EventWatchers::prune(Node* node) {
  while (node != &root_ && node->watchers.empty() && node->children.size() < 2) {
    Node* const parent = node->parent;
    const auto link = parent->children.find(node->label.front());
    --nodes_;
    if (!node->children.empty()) {
      std::unique_ptr<Node> only = std::move(node->children.begin()->second);
      only->label.insert(0, node->label);
      only->parent = parent;
      link->second = std::move(only);
      return;
    }
    parent->children.erase(link);
    node = parent;
  }
}

// The next on the way of a key, of which `rest` is left; null at its end.
const EventWatchers::Node* EventWatchers::next_node(const Node& node, std::string_view& rest) {
  if (rest.empty()) return nullptr;
  const auto found = node.children.find(rest.front());
  if (found == node.children.end() || !rest.starts_with(found->second->label)) return nullptr;
  rest.remove_prefix(found->second->label.size());
  return found->second.get();
}

// Events.

bool EventWatchers::tell_some(Now now, const EventFeed::MayTell& may_tell, const Tell& tell) {
  if (watchers_.empty()) return false;
  for (std::size_t cost = 0; cost < kCostPerTurn; ++place_) {
    if (told_ == entries_.size() && !read_some(may_tell)) return false;
    cost += tell_one(*entries_[told_++], now, tell);
  }
  return true;
}

// False: no event can be sent now.
bool EventWatchers::read_some(const EventFeed::MayTell& may_tell) {
  entries_.clear();
  told_ = 0;
  const std::uint64_t missed = feed_.read(place_, entries_, may_tell);
  if (missed > 0) count_missed(place_, place_ + missed);
  place_ += missed;
  return !entries_.empty();
}

// Nobody knows of which keys they were.
void EventWatchers::count_missed(std::uint64_t from, std::uint64_t to) {
  for (auto& [id, watcher] : watchers_) {
    const std::uint64_t first = std::max(from, watcher.from);
    if (first < to) watcher.missed += to - first;
  }
}

// Returns what it cost.
std::size_t EventWatchers::tell_one(const EventFeed::Entry& entry, Now now, const Tell& tell) {
  std::size_t cost = 0;
  std::optional<KeyEventJson> json;
  std::string_view rest = entry.key;
  for (const Node* node = &root_; node != nullptr; node = next_node(*node, rest)) {
    ++cost;
    const auto& watchers = node->watchers;
    for (Watcher* w = watchers.front(); w != nullptr; w = watchers.next(w)) {
      ++cost;
      if (w->from > place_) continue;
      if (w->confined_to != nullptr && !w->confined_to->may_touch(entry.key)) continue;
      if (!json) {
        json =
            show(entry.event, now.unix_ms - whole_ms(now.time - entry.event.at), feed_.clients());
        cost += kCostOfJson;
      }
      w->missed = tell(w->id, *json, w->missed) ? 0 : w->missed + 1;
    }
  }
  return cost;
}

}  // namespace lockd
