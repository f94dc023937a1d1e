#include "server/session/signal_outlet.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockd {
namespace {

// Per turn, a few milliseconds each: subscriptions visited to publish, and the cost of delivering.
constexpr std::size_t kVisitsPerTurn = 64 * 1024;
constexpr std::size_t kCostPerTurn = SignalHub::kBacklogMax / 2;

}  // namespace

SignalOutlet::SignalOutlet(SignalHub& hub, WorkerStats& stats, Inbox& inbox, Sessions& sessions,
                           std::function<void()> wake)
    : hub_(hub),
      stats_(stats),
      inbox_(inbox),
      sessions_(sessions),
      wake_(std::move(wake)),
      mailbox_(hub.attach(*this)) {}

void SignalOutlet::deliver(std::span<const std::uint64_t> subscribers,
                           const std::shared_ptr<const Signal>& signal) noexcept {
  inbox_.post(Inbox::SignalLetter{signal, {subscribers.begin(), subscribers.end()}});
}

void SignalOutlet::on_room() noexcept {
  if (wants_room_.exchange(false)) wake_();
}

// A signal that is only half sent keeps the others waiting, but not itself.
bool SignalOutlet::has_room() const {
  return publication_.rest == nullptr ? !hub_.is_behind() : hub_.has_room();
}

bool SignalOutlet::may_publish() const { return visited_ < kVisitsPerTurn && has_room(); }

std::optional<std::size_t> SignalOutlet::publish(SessionId publisher, std::string_view channel,
                                                 std::string_view payload) {
  if (!waiting_.empty() || !begin(publisher, channel, payload)) {
    waiting_.push_back({publisher, std::string(channel), std::string(payload)});
    return {};
  }
  if (publication_.rest != nullptr) return {};
  return publication_.reached;
}

// False: the signal has to wait.
bool SignalOutlet::begin(SessionId publisher, std::string_view channel, std::string_view payload) {
  if (publication_.rest != nullptr || !may_publish()) return false;
  std::optional<SignalHub::Published> published = hub_.publish(channel, payload);
  if (!published) return false;
  publication_ = {.publisher = publisher};
  count(std::move(*published));
  stats_.signals_published.add();
  return true;
}

void SignalOutlet::count(SignalHub::Published published) {
  visited_ += published.visited;
  publication_.reached += published.reached;
  publication_.rest = std::move(published.rest);
  stats_.signals_delivered.add(published.reached);
}

void SignalOutlet::continue_publication() {
  while (publication_.rest != nullptr && may_publish()) count(hub_.go_on(publication_.rest));
  if (publication_.rest != nullptr) return;
  sessions_.on_published(publication_.publisher, publication_.reached);
}

// A signal that is half sent goes alone: signals of other loops have waited for it, and come next.
// Otherwise first come, first served. A publisher that continues may publish again; that signal is
// the last in the queue. The signal of a publisher that has left is dropped.
void SignalOutlet::publish_waiting() {
  if (publication_.rest != nullptr) return continue_publication();
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    const bool is_wanted = sessions_.is_open(next.publisher);
    if (is_wanted && !begin(next.publisher, next.channel, next.payload)) return;
    waiting_.pop_front();
    if (is_wanted) continue_publication();
  }
}

void SignalOutlet::deliver_received() {
  std::vector<Inbox::SignalLetter> letters = inbox_.take_signals();
  std::ranges::move(letters, std::back_inserter(received_));
  std::size_t cost = 0;
  while (!received_.empty() && cost < kCostPerTurn) {
    const Inbox::SignalLetter& next = received_.front();
    sessions_.on_signal(next.to[delivered_], *next.signal);
    cost += next.signal->cost();
    if (++delivered_ < next.to.size()) continue;
    received_.pop_front();
    delivered_ = 0;
  }
  if (cost > 0) hub_.handed_on(mailbox_, cost);
}

// Looks again after the flag is set: room that is made after that wakes the loop.
bool SignalOutlet::end_turn() {
  visited_ = 0;
  if (!received_.empty()) return true;
  if (publication_.rest == nullptr && waiting_.empty()) return false;
  if (has_room()) return true;
  wants_room_ = true;
  return has_room() && wants_room_.exchange(false);
}

}  // namespace lockd
