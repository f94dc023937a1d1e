// SignalOutlet: the signals that one host's sessions publish, and those that they receive.
//
// Signals have a budget per turn, because leases depend on the length of a turn. It limits the
// subscriptions that are visited to publish, and the bytes that are handed to sessions. The rest
// belongs to later turns. A signal that has to wait blocks its publisher's session.
//
// Used by the host's thread, but for the Mailbox functions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pubsub/signal_hub.h"
#include "server/session/inbox.h"
#include "server/worker_stats.h"

namespace lockd {

class SignalOutlet final : private Mailbox {
 public:
  // The host's sessions. A function may be called for a session that is not open.
  class Sessions {
   public:
    virtual bool is_open(SessionId id) const = 0;
    // The signal that had to wait was sent to this many subscribers.
    virtual void on_published(SessionId publisher, std::size_t reached) = 0;
    virtual void on_signal(SessionId listener, const Signal& signal) = 0;

   protected:
    ~Sessions() = default;
  };

  SignalOutlet(SignalHub& hub, WorkerStats& stats, Inbox& inbox, Sessions& sessions,
               std::function<void()> wake);

  // The number under which the host's sessions listen.
  std::uint8_t mailbox() const { return mailbox_; }

  // The number of subscribers that the signal was sent to; or nothing, if it has to wait.
  std::optional<std::size_t> publish(SessionId publisher, std::string_view channel,
                                     std::string_view payload);

  // Publishes signals that wait, and hands received signals to sessions, as far as the turn allows.
  void publish_waiting();
  void deliver_received();
  // Whether another turn is needed soon. If the signals wait for room, on_room() causes it.
  bool end_turn();

 private:
  struct Waiting {
    SessionId publisher = 0;
    std::string channel{};
    std::string payload{};
  };
  // The signal that was begun last.
  struct Publication {
    SessionId publisher = 0;
    std::size_t reached = 0;
    std::shared_ptr<const Signal> rest{};  // not null: some subscribers are still to be reached
  };

  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override;
  void on_room() noexcept override;

  bool has_room() const;
  bool may_publish() const;
  bool begin(SessionId publisher, std::string_view channel, std::string_view payload);
  void continue_publication();
  void count(SignalHub::Published published);

  SignalHub& hub_;
  WorkerStats& stats_;
  Inbox& inbox_;
  Sessions& sessions_;
  const std::function<void()> wake_;
  const std::uint8_t mailbox_;
  std::deque<Waiting> waiting_;
  Publication publication_;
  std::size_t visited_ = 0;                   // subscriptions, in this turn
  std::atomic<bool> wants_room_{false};       // a signal waits for room in the hub
  std::deque<Inbox::SignalLetter> received_;  // and not handed to all sessions yet
  std::size_t delivered_ = 0;                 // sessions that have the first of received_
};

}  // namespace lockd
