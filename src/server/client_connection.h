// A client's socket, as the transport of its session: what is done about a peer that is silent or
// slow, and how it is closed.
//
// Belongs to one worker, and is touched by its thread only.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/list.h"
#include "net/connection.h"
#include "server/admission.h"
#include "server/buffer_budget.h"
#include "server/log.h"
#include "server/peer_deadlines.h"
#include "server/session/session_host.h"

namespace lockd {

class Worker;

class ClientConnection final : public Transport,
                               public BufferLedger::Account,
                               private Connection::Handler {
 public:
  // `tls` may be null: plain text.
  ClientConnection(Worker& worker, Descriptor socket, std::unique_ptr<TlsChannel> tls,
                   Protocol protocol, boost::asio::ip::address address);
  ~ClientConnection() override;

  // Begins to read, for the session that it carries by now.
  void start();
  // One more has come than there may be without proof, and this one was the first of them: closes
  // it, unless it has proved itself meanwhile.
  void make_room();

  HostedSession& hosted() { return *hosted_; }

  // About once a second: whether it has been unproven or silent for too long, or should say
  // something itself.
  void check_silence(Connection::Clock::time_point now);
  // Every tick, while it needs to be watched. False when that is over.
  bool watch(Connection::Clock::time_point now);

  // All connections have too much in buffers, and this one has most.
  void cut_for_memory();

  ListHook<ClientConnection> watched;  // it is slow, paused or lingering
  ListHook<ClientConnection> round;    // all whose sessions go on, in the order of their checks

 private:
  // Of Transport.
  void attach(HostedSession& hosted) override { hosted_ = &hosted; }
  std::string& output() override { return connection_.output(); }
  void flush() override { connection_.flush(); }
  void cork() override { connection_.cork(); }
  bool uncork() override;
  std::uint64_t bytes_written() const override { return connection_.bytes_written(); }
  void roll_back_output(std::uint64_t from) override { connection_.roll_back_output(from); }
  void resume_input() override;
  bool has_unread() const override { return connection_.unread_size() > 0; }
  bool input_pending() const override { return connection_.input_pending(); }
  bool peer_has_left() const override { return connection_.peer_has_left(); }
  bool has_room_for(Push what) override;
  void on_turn_end() override;
  void on_session_end() override;
  void close_gently() override;
  void close() override;
  std::string tls_binding() const override { return connection_.tls_binding(); }
  bool is_idle() const override { return connection_.idle(); }

  // Of Connection::Handler.
  void on_established() override;
  std::size_t on_input(std::string_view unread) override;
  void on_all_sent() override;
  void on_end_of_input() override;
  void on_broken() override;

  const ServerSession& session() const { return *hosted_->session; }
  bool is_over() const { return hosted_->is_over; }
  bool has_room_for_signal();
  bool is_paused() const { return session().pause() != ServerSession::Pause::none; }
  bool needs_watching() const {
    return connection_.needs_watching() || (!is_over() && is_paused());
  }
  void look_for_proof();
  void end_without_proof();
  void log_violation();
  void log(PeerEvent& event, LogFields more = {}) const;
  LogFields about(LogFields more) const;
  void limit_unread();
  void settle();
  void begin_pause();
  Connection::Clock::duration note_failure(Connection::Clock::time_point now);

  Worker& worker_;
  const Protocol protocol_;
  const boost::asio::ip::address address_;
  Connection connection_;
  HostedSession* hosted_ = nullptr;
  Unproven unproven_;
  bool is_unproven_ = false;
  std::uint32_t signals_unsent_ = 0;
  Violation logged_violation_ = Violation::none;
  PeerDeadlines deadlines_;
};

}  // namespace lockd
