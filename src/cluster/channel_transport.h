// The transport of a session whose client is connected to another server: one channel of a link.
//
//   client ── its server ══ link ══ LinkSession ── ChannelTransport ── LineSession or HttpSession
//
// Each direction has a window. What the other server has not taken is unsent, as far as the session
// is concerned. Belongs to its host's thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/peer_frame.h"
#include "server/peer_deadlines.h"
#include "server/session/hosted_session.h"
#include "server/session/transport.h"

namespace lockd {

class LinkSession;
class SessionHost;

class ChannelTransport final : public Transport {
 public:
  using Time = PeerDeadlines::Time;

  // `client` is its id at the other server.
  ChannelTransport(LinkSession& link, SessionHost& host, SessionId client, Time now,
                   Duration read_timeout)
      : link_(link),
        host_(host),
        client_(client),
        heard_(now),
        deadlines_(now, {.auth = {}, .read = read_timeout}) {}

  // From the link.
  void receive(std::string_view bytes);
  void on_taken(std::uint64_t bytes);
  void end_input(std::uint64_t left);
  // About once a second: whether its client has been silent for too long.
  void check_silence(Time now);
  // What it has in memory.
  std::size_t buffered() const { return unread_.size() + output_.size(); }

  HostedSession& hosted() const { return *hosted_; }

  void attach(HostedSession& hosted) override { hosted_ = &hosted; }
  std::string& output() override { return output_; }
  void flush() override { send(output_.size()); }
  void cork() override { corked_ = output_.size(); }
  bool uncork() override;
  std::uint64_t bytes_written() const override { return sent_ + output_.size(); }
  void roll_back_output(std::uint64_t from) override;
  void resume_input() override { receive({}); }
  bool has_unread() const override { return !unread_.empty(); }
  bool input_pending() const override {
    return is_resuming_ || left_ > 0 || (hosted_->is_held_back && !unread_.empty());
  }
  bool peer_has_left() const override { return input_ended_; }
  bool has_room_for(Push what) override;
  void on_turn_end() override;
  void on_session_end() override { std::string().swap(unread_); }
  void close_gently() override;
  void close() override;
  bool is_idle() const override { return is_closed_; }

 private:
  void send(std::size_t size);
  void acknowledge();
  std::size_t unsent() const { return untaken_ + output_.size(); }

  LinkSession& link_;
  SessionHost& host_;
  HostedSession* hosted_ = nullptr;
  const SessionId client_;
  std::string unread_;
  std::size_t unacknowledged_ = 0;  // of what came
  std::uint64_t left_ = 0;          // bytes that are still to come, when the input has ended
  std::string output_;
  std::size_t corked_ = 0;   // of the output
  std::size_t allowed_ = 0;  // of the output, to be sent as the window allows
  std::uint64_t sent_ = 0;
  std::size_t untaken_ = 0;  // of that
  Time heard_;
  PeerDeadlines deadlines_;
  bool input_ended_ = false;
  bool is_resuming_ = false;
  bool is_closing_ = false;
  bool is_closed_ = false;
};

}  // namespace lockd
