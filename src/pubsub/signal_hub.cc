#include "pubsub/signal_hub.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "base/pattern.h"

namespace lockd {
namespace {

constexpr std::string_view kPrefix = "sig ";

// How much is done under one hold of the lock by calls that may have much to do.
constexpr int kSlice = 256;

// A mailbox's number and a name in it, as one: the subscribers of a mailbox sort together.
constexpr unsigned kNameBits = 56;

SubscriberId id_of(SignalHub::Subscriber subscriber) {
  assert(subscriber.name <= SignalHub::kNameMax);
  return std::uint64_t{subscriber.mailbox} << kNameBits | subscriber.name;
}

}  // namespace

Signal::Signal(std::string_view channel, std::string_view payload) : channel_size_(channel.size()) {
  line_.reserve(kPrefix.size() + channel.size() + payload.size() + 2);
  line_.append(kPrefix).append(channel).append(1, ' ').append(payload).append(1, '\n');
}

std::string_view Signal::channel() const { return line().substr(kPrefix.size(), channel_size_); }

std::string_view Signal::payload() const {
  const std::size_t start = kPrefix.size() + channel_size_ + 1;
  return line().substr(start, line_.size() - start - 1);
}

std::uint8_t SignalHub::attach(Mailbox& mailbox) {
  MutexLock lock(mutex_);
  if (mailbox_count_ == kMailboxesMax) throw std::length_error("more than 256 mailboxes");
  mailboxes_[mailbox_count_].mailbox = &mailbox;
  return static_cast<std::uint8_t>(mailbox_count_++);
}

bool SignalHub::listen(Subscriber subscriber, std::string_view pattern, std::string_view group) {
  const SubscriberId id = id_of(subscriber);
  MutexLock lock(mutex_);
  assert(subscriber.mailbox < mailbox_count_);
  const std::size_t in_all = subscriptions_.size() + subscriptions_.nodes();
  const bool is_full = (own_max_ != 0 && subscriptions_.count(id) >= own_max_) ||
                       (in_all_max_ != 0 && in_all >= in_all_max_);
  if (is_full) return subscriptions_.contains(id, pattern, group);
  subscriptions_.add(id, pattern, group);
  return true;
}

bool SignalHub::unlisten(Subscriber subscriber, std::string_view pattern, std::string_view group) {
  MutexLock lock(mutex_);
  return subscriptions_.remove(id_of(subscriber), pattern, group);
}

void SignalHub::drop(Subscriber subscriber) {
  for (bool done = false; !done;) {
    int budget = kSlice;
    done = drop_some(subscriber, &budget);
  }
}

bool SignalHub::drop_some(Subscriber subscriber, int* budget) {
  while (*budget > 0) {
    const auto wanted = static_cast<std::size_t>(std::min(*budget, kSlice));
    MutexLock lock(mutex_);
    const std::size_t removed = subscriptions_.remove_all(id_of(subscriber), wanted);
    *budget -= static_cast<int>(removed);
    if (removed < wanted) return true;
  }
  return false;
}

std::size_t SignalHub::count(Subscriber subscriber) const {
  MutexLock lock(mutex_);
  return subscriptions_.count(id_of(subscriber));
}

std::size_t SignalHub::listeners() const {
  MutexLock lock(mutex_);
  return subscriptions_.size();
}

std::optional<SignalHub::Published> SignalHub::publish(std::string_view channel,
                                                       std::string_view payload) {
  assert(is_payload(channel, payload));
  std::vector<SubscriberId> subscribers;
  subscribers.reserve(64);  // so that it seldom grows under the lock
  Published published;
  bool is_whole = true;
  {
    MutexLock lock(mutex_);
    if (subscriptions_.is_matching()) return {};
    subscriptions_.begin_match(channel);
    published.visited = match_some(subscribers);
    is_whole = !subscriptions_.is_matching();
  }
  published.reached = subscribers.size();
  if (is_whole && subscribers.empty()) return published;
  auto signal = std::make_shared<const Signal>(channel, payload);
  deliver(subscribers, signal);
  if (!is_whole) published.rest = std::move(signal);
  return published;
}

SignalHub::Published SignalHub::go_on(const std::shared_ptr<const Signal>& rest) {
  std::vector<SubscriberId> subscribers;
  Published published;
  {
    MutexLock lock(mutex_);
    published.visited = match_some(subscribers);
    if (subscriptions_.is_matching()) published.rest = rest;
  }
  published.reached = subscribers.size();
  deliver(subscribers, rest);
  if (published.rest == nullptr) tell_of_room();
  return published;
}

std::size_t SignalHub::match_some(std::vector<SubscriberId>& subscribers) {
  const std::size_t visited = subscriptions_.match_some(kVisitsMax, subscribers);
  const bool is_half_out = subscriptions_.is_matching();
  if (is_half_out != is_half_out_.load(std::memory_order_relaxed)) is_half_out_ = is_half_out;
  return visited;
}

// One call per mailbox, however many of its subscribers there are: a loop is woken once.
void SignalHub::deliver(std::vector<SubscriberId>& subscribers,
                        const std::shared_ptr<const Signal>& signal) {
  std::sort(subscribers.begin(), subscribers.end());
  for (auto first = subscribers.begin(); first != subscribers.end();) {
    const std::uint64_t mailbox = *first >> kNameBits;
    auto last = first;
    for (; last != subscribers.end() && *last >> kNameBits == mailbox; ++last) *last &= kNameMax;
    Attached& attached = mailboxes_[mailbox];
    // First counted, then delivered: it cannot be handed on before it is counted.
    const std::size_t cost = static_cast<std::size_t>(last - first) * signal->cost();
    const std::size_t before = attached.backlog.fetch_add(cost, std::memory_order_relaxed);
    if (before <= kBacklogMax && before + cost > kBacklogMax) ++behind_;
    attached.mailbox->deliver({first, last}, signal);
    first = last;
  }
}

void SignalHub::handed_on(std::uint8_t mailbox, std::size_t cost) {
  const std::size_t before = mailboxes_[mailbox].backlog.fetch_sub(cost, std::memory_order_relaxed);
  if (before <= kBacklogMax || before - cost > kBacklogMax) return;
  if (behind_.fetch_sub(1) == 1) tell_of_room();
}

void SignalHub::tell_of_room() {
  std::size_t count = 0;
  {
    MutexLock lock(mutex_);
    count = mailbox_count_;
  }
  for (std::size_t i = 0; i < count; ++i) mailboxes_[i].mailbox->on_room();
}

std::vector<AudienceStatus> SignalHub::list_some(const AudienceStatus& after) const {
  MutexLock lock(mutex_);
  return subscriptions_.list(after.pattern, after.group, std::size_t{kSlice});
}

}  // namespace lockd
