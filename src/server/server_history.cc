#include "server/server_history.h"

#include <algorithm>
#include <utility>

namespace lockd {
namespace {

using EventType = ServerEvent::Type;

constexpr auto kTypes = std::to_array<EventType>(
    {EventType::started, EventType::kicked, EventType::auth_failed, EventType::refused});

std::size_t size_of(const ServerEvent& event) {
  return sizeof(event) + event.peer.size() + event.client.size() + event.note.size() +
         event.reason.size() + event.by.size();
}

}  // namespace

std::string_view event_name(EventType type) {
  switch (type) {
    case EventType::started: return "started";
    case EventType::kicked: return "kicked";
    case EventType::auth_failed: return "auth_failed";
    case EventType::refused: return "refused";
  }
  return "";
}

std::optional<EventType> server_event_type(std::string_view name) {
  for (const EventType type : kTypes) {
    if (event_name(type) == name) return type;
  }
  return {};
}

ServerHistory::ServerHistory(std::size_t capacity, std::function<Time()> now)
    : capacity_(capacity / 2), now_(std::move(now)) {}

ServerHistory::Ring& ServerHistory::ring_of(EventType type) {
  return type == EventType::auth_failed || type == EventType::refused ? strangers_ : own_;
}

void ServerHistory::add(ServerEvent event) {
  if (capacity_ == 0) return;
  event.at = now_();
  const EventType type = event.type;
  if ((type == EventType::auth_failed && !auth_failures_.admit(event.at.ns)) ||
      (type == EventType::refused && !refusals_.admit(event.at.ns))) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::size_t size = size_of(event);
  auto kept = std::make_shared<const ServerEvent>(std::move(event));
  MutexLock lock(mutex_);
  Ring& ring = ring_of(type);
  ring.events.push_back(std::move(kept));
  ring.bytes += size;
  while (ring.bytes > capacity_ && ring.events.size() > 1) {
    ring.bytes -= size_of(*ring.events.front());
    ring.events.pop_front();
  }
}

std::vector<ServerHistory::Event> ServerHistory::read(
    const std::function<bool(const ServerEvent&)>& matches, std::size_t events_max) const {
  std::vector<Event> found;
  {
    MutexLock lock(mutex_);
    found.assign(own_.events.begin(), own_.events.end());
    found.insert(found.end(), strangers_.events.begin(), strangers_.events.end());
  }
  std::erase_if(found, [&](const Event& event) { return !matches(*event); });
  std::stable_sort(found.begin(), found.end(),
                   [](const Event& a, const Event& b) { return a->at > b->at; });
  found.resize(std::min(found.size(), events_max));
  return found;
}

}  // namespace lockd
