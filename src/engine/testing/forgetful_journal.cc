#include "engine/testing/forgetful_journal.h"

#include <algorithm>
#include <utility>

namespace lockd {

ForgetfulJournal::ForgetfulJournal(ForgetfulJournal& crashed, Sync sync) : sync_(sync) {
  const std::vector<Event> events = crashed.events();
  MutexLock lock(mutex_);
  for (Position p = 0; p < crashed.durable(); ++p) keep(events[p]);
  durable_ = kept_.size();
}

bool ForgetfulJournal::recover(const std::function<void(const Event&)>& apply) {
  const std::vector<Event> all = events();
  for (const Event& event : all) apply(event);
  return !all.empty();
}

Position ForgetfulJournal::append(std::span<const Event> events) {
  MutexLock lock(mutex_);
  for (const Event& event : events) keep(event);
  return kept_.size();
}

void ForgetfulJournal::commit(Position) {
  if (sync_ == Sync::at_once) sync();
}

Position ForgetfulJournal::durable() const noexcept {
  MutexLock lock(mutex_);
  return durable_;
}

Journal::State ForgetfulJournal::state() const noexcept {
  MutexLock lock(mutex_);
  return state_;
}

void ForgetfulJournal::attach(Source* source) {
  MutexLock lock(source_mutex_);
  source_ = source;
}

void ForgetfulJournal::sync() {
  {
    MutexLock lock(mutex_);
    if (state_ == State::failed || durable_ == kept_.size()) return;
    durable_ = kept_.size();
  }
  report();
}

void ForgetfulJournal::set_state(State state) {
  {
    MutexLock lock(mutex_);
    state_ = state;
  }
  report();
}

bool ForgetfulJournal::follow(std::span<const Event> events) {
  MutexLock lock(source_mutex_);
  Source& source = *source_;
  return std::all_of(events.begin(), events.end(),
                     [&](const Event& event) { return source.apply(event); });
}

void ForgetfulJournal::lead(Position from, Duration lease_min) {
  {
    MutexLock lock(source_mutex_);
    source_->lead(from, lease_min);
  }
  set_state(State::accepting);
}

std::size_t ForgetfulJournal::describe() {
  const std::size_t before = events().size();
  MutexLock lock(source_mutex_);
  for (bool from_start = true; source_->describe_some(from_start); from_start = false) {
  }
  return before;
}

std::vector<Event> ForgetfulJournal::events() const {
  MutexLock lock(mutex_);
  std::vector<Event> events;
  for (const Kept& kept : kept_) events.push_back(kept.event);
  return events;
}

void ForgetfulJournal::keep(const Event& event) {
  const ClientView& client = event.client;
  Kept& kept = kept_.emplace_back(
      Kept{event,
           std::string(event.key),
           std::string(event.holder.name()),
           {std::string(client.name), std::string(client.peer), std::string(client.note)}});
  kept.event.key = kept.key;
  kept.event.client = kept.client;
  if (!event.holder.is_secret()) kept.event.holder = Holder(std::string_view(kept.holder));
}

void ForgetfulJournal::report() {
  MutexLock lock(source_mutex_);
  if (source_ != nullptr) source_->progressed();
}

}  // namespace lockd
