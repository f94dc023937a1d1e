// The follower's end of a link to the leader, without its socket: a channel for each client of one
// loop that is proxied.
//
//   waiting ──link up──▶ open ──close, or the link breaks──▶ over
//      └──no leader in time──▶ over
//
// A channel copies bytes, and knows nothing of what they mean. Nothing is sent twice: what was sent
// over a link that breaks is lost with it. Used by one thread, that of the loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/peer_frame.h"

namespace lockd {

class FollowerLink;

class Channel {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class State : std::uint8_t { waiting, open, over };
  enum class End : std::uint8_t {
    closed,     // by the leader
    lost,       // the link broke: what was sent may have been executed
    no_leader,  // it never opened
  };

  // Called by the link. None of the functions may destroy the channel.
  class Client {
   public:
    virtual void on_channel_open() = 0;
    virtual void on_channel_bytes(std::string_view bytes) = 0;
    virtual void on_channel_room() = 0;  // more can be sent, after room() was too little
    virtual void on_channel_end(End end) = 0;

   protected:
    ~Client() = default;
  };

  // `opening.connected_ms` is set when the channel opens. All of them outlive it.
  Channel(FollowerLink& link, SessionId id, Opening opening, Time connected, Client& client)
      : link_(link),
        id_(id),
        opening_(std::move(opening)),
        connected_(connected),
        client_(client) {}
  ~Channel() { close(FrameType::close); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Opens, at once or when the link is up. Gives up at `deadline`.
  void start(Time deadline);
  State state() const { return state_; }
  // It waits no longer.
  void give_up() { end(End::no_leader); }
  // So many bytes can be sent now.
  std::size_t room() const;
  // Precondition: it is open, and there is room.
  void send(std::string_view bytes);
  // So many more of its bytes have left this server.
  void acknowledge(std::uint64_t bytes);
  // The client sends no more than `left` bytes, which are still to be sent. Once.
  void end_input(std::uint64_t left);
  // `how` is close or detach. Nothing is called after it.
  void close(FrameType how);
  // Bytes that were sent and are not taken.
  std::size_t in_flight() const { return sent_; }

 private:
  friend class FollowerLink;

  void open();
  void end(End end);

  FollowerLink& link_;
  const SessionId id_;
  Opening opening_;
  const Time connected_;
  Client& client_;
  State state_ = State::over;
  Time deadline_{};
  std::size_t sent_ = 0;  // and not taken
  bool wants_room_ = false;
};

class FollowerLink {
 public:
  using Time = Channel::Time;

  // The connection, while there is one.
  class Wire {
   public:
    virtual std::string& output() = 0;
    virtual std::size_t unsent() const = 0;

   protected:
    ~Wire() = default;
  };

  // Both ends have proved that they belong together. It is up when the leader's clock is known.
  void begin(Wire& wire);
  // It is broken, or there is no leader to wait for: `gives_up` also ends those that wait.
  void end(bool gives_up = false);
  bool is_up() const { return wire_ != nullptr && clock_ahead_.has_value(); }
  // How much was taken; none: it makes no sense.
  std::optional<std::size_t> receive(std::string_view unread, Time now);
  // The wire has sent what there was.
  void on_all_sent();
  // Those that have waited for too long.
  void tick(Time now);

 private:
  friend class Channel;

  static constexpr std::size_t kUnsentMax = 512 * 1024;

  void take(const Frame& frame, Time now);
  void send(FrameType type, SessionId id, std::string_view payload = {}) {
    write_frame(wire_->output(), type, id, payload);
  }
  bool has_room() const { return wire_ != nullptr && wire_->unsent() < kUnsentMax; }
  std::uint64_t leader_clock_at(Time time) const;
  // What happens to one may end others.
  template <typename Act>
  void for_each(Channel::State state, Act act);

  Wire* wire_ = nullptr;
  std::map<SessionId, Channel*> channels_;                // that wait or are open
  std::optional<std::chrono::milliseconds> clock_ahead_;  // at least so far is the leader's clock
};

}  // namespace lockd
