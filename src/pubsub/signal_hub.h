// Signals: what one client publishes on a channel goes to those who listen to it. For the sessions
// of every transport, on every loop.
//
//   const std::uint8_t mine = hub.attach(mailbox);             // once per loop
//   hub.listen({mine, connection_id}, "orders.>", "billing");  // false: there are too many
//   hub.publish("orders.eu.42", "paid")->reached;              // how many it went to
//   hub.drop({mine, connection_id});                           // it has closed
//
// Who gets what is in pubsub/subscriptions.h. Delivery is fire and forget, at most once, and in
// order: what one thread publishes reaches each subscriber in that order.
//
// A loop that does not keep up with its signals is behind. As long as one is, nobody should
// publish: is_behind() says so, and Mailbox::on_room() when it is over. So what waits in mailboxes
// is bounded by what each publisher may do between two looks, and no subscriber's socket is ever
// waited for.
//
// A signal that many patterns or groups match goes out in pieces, between which its publisher may
// see to other things. While one is half out the hub is behind, too: there is at most one, and
// nobody else's signal can overtake it.
//
// Any thread may call anything. Under the hub's lock is only the choice of the subscribers; a
// signal is put into mailboxes after it, and nobody waits for a subscriber. A publish that runs
// while its subscriber leaves may still deliver to it: a mailbox belongs to a loop, which outlives
// its subscribers, and looks up the name that it is given; one that has closed is not found. For
// that, names are never used again. Such a signal counts as delivered, also when a group chose the
// one that left: nobody else is tried.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "pubsub/subscriptions.h"

namespace lockd {

// One signal as it is pushed to line clients; made once, shared by all who receive it.
class Signal {
 public:
  Signal(std::string_view channel, std::string_view payload);

  std::string_view line() const { return line_; }  // "sig <channel> <payload>\n"
  std::string_view channel() const;
  std::string_view payload() const;
  // What it takes to hand it to one subscriber, in bytes: there is more to that than to copy them.
  std::size_t cost() const { return line_.size() + 64; }

 private:
  std::string line_;
  std::size_t channel_size_;
};

// Where one loop takes in the signals for its connections.
class Mailbox {
 public:
  // The signal goes to each of `subscribers`, by the names under which they listen. Called on the
  // publisher's thread, no lock held. Must not wait: not for a subscriber, nor for a lock that is
  // held while one is written to. What one thread delivers must come out in that order.
  virtual void deliver(std::span<const std::uint64_t> subscribers,
                       const std::shared_ptr<const Signal>& signal) noexcept = 0;
  // No mailbox is behind any more, or no signal is half out. Called on the thread of the one that
  // was, or whose was. Must not wait.
  virtual void on_room() noexcept = 0;

 protected:
  ~Mailbox() = default;
};

class SignalHub {
 public:
  static constexpr std::size_t kMailboxesMax = 256;
  static constexpr std::uint64_t kNameMax = (std::uint64_t{1} << 56) - 1;

  struct Subscriber {
    std::uint8_t mailbox;  // from attach()
    std::uint64_t name;    // among those of the mailbox; at most kNameMax, never used again
  };

  // How many subscriptions one subscriber may have, and how many there may be in all together with
  // the nodes of the trie that they need: one for most patterns, three at most. 0 is no limit.
  static constexpr std::size_t kSubscriptionsMax = 1'000'000;
  explicit SignalHub(std::size_t own_max = 0, std::size_t in_all_max = kSubscriptionsMax)
      : own_max_(own_max), in_all_max_(in_all_max) {}

  // The mailbox must outlive every call of publish(). Throws std::length_error past kMailboxesMax.
  std::uint8_t attach(Mailbox& mailbox) EXCLUDES(mutex_);

  // False when the subscriber has as many subscriptions as it may, or when there are as many in all
  // as there may be; true also when it has this one.
  // Precondition: is_pattern(pattern). An empty group is none.
  bool listen(Subscriber subscriber, std::string_view pattern, std::string_view group)
      EXCLUDES(mutex_);
  // False when there was nothing to remove.
  bool unlisten(Subscriber subscriber, std::string_view pattern, std::string_view group)
      EXCLUDES(mutex_);
  // Ends all its subscriptions. What is published from now on does not go to it. And the same in
  // pieces: `budget` of them, less what it took. True when nothing is left.
  void drop(Subscriber subscriber) EXCLUDES(mutex_);
  bool drop_some(Subscriber subscriber, int* budget) EXCLUDES(mutex_);

  // How many subscriptions it has, and whether it has any.
  std::size_t count(Subscriber subscriber) const EXCLUDES(mutex_);
  bool listens(Subscriber subscriber) const { return count(subscriber) > 0; }
  // How many subscriptions there are.
  std::size_t listeners() const EXCLUDES(mutex_);

  // What a call has done for a signal.
  struct Published {
    std::size_t reached = 0;  // subscribers
    std::size_t visited = 0;  // nodes and subscriptions, to find them: at most kVisitsMax
    std::shared_ptr<const Signal> rest{};  // the signal, if it is only half out
  };
  // None: a signal is half out, and this one has to wait.
  // Precondition: is_channel(channel) and is_payload(channel, payload).
  std::optional<Published> publish(std::string_view channel, std::string_view payload)
      EXCLUDES(mutex_);
  // Goes on with the `rest` of a publish(), until nothing is left. To be called by the same thread,
  // which owes it: others wait.
  Published go_on(const std::shared_ptr<const Signal>& rest) EXCLUDES(mutex_);
  static constexpr std::size_t kVisitsMax = 16 * 1024;

  // A mailbox has handed on what cost so much.
  void handed_on(std::uint8_t mailbox, std::size_t cost) EXCLUDES(mutex_);
  // Whether no mailbox has more than kBacklogMax to hand on: what is half out may go on.
  bool has_room() const { return behind_.load() <= 0; }
  // Whether nobody should publish.
  bool is_behind() const { return !has_room() || is_half_out_.load(); }
  static constexpr std::size_t kBacklogMax = std::size_t{8} << 20;

  // Of the patterns and groups that somebody listens to, in that order, some hundreds that follow
  // `after`; none when that was all. Those that come or go between two calls may be missed.
  std::vector<AudienceStatus> list_some(const AudienceStatus& after) const EXCLUDES(mutex_);

 private:
  std::size_t match_some(std::vector<SubscriberId>& subscribers) REQUIRES(mutex_);
  void deliver(std::vector<SubscriberId>& subscribers, const std::shared_ptr<const Signal>& signal);
  void tell_of_room() EXCLUDES(mutex_);

  const std::size_t own_max_;
  const std::size_t in_all_max_;

  struct Attached {
    // Written once, by attach(), before anyone can listen there, and read only after a match has
    // found one who does: the mutex, taken for both, has come between.
    Mailbox* mailbox = nullptr;
    std::atomic<std::size_t> backlog{0};  // what it has to hand on, by cost()
  };
  std::array<Attached, kMailboxesMax> mailboxes_;
  // How many are behind. For a moment it may be one too few, when one falls behind and catches up
  // on two threads at once.
  std::atomic<int> behind_{0};
  std::atomic<bool> is_half_out_{false};  // a signal is; written under the mutex

  mutable Mutex mutex_;
  std::size_t mailbox_count_ GUARDED_BY(mutex_) = 0;
  Subscriptions subscriptions_ GUARDED_BY(mutex_);
};

}  // namespace lockd
