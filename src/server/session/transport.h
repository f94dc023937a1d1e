// Where one session's bytes come from and go to: a socket, or a wire of the simulation. It carries
// the session, and what the SessionHost knows of it.
//
// Owned by the SessionHost, and used by its thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/list.h"
#include "server/session/server_session.h"

namespace lockd {

class Transport {
 public:
  virtual ~Transport() = default;

  // What the session says is appended here. It leaves by flush(), all of it; or by cork(), which
  // marks what there is, and uncork(), which sends what was marked and returns whether more was
  // appended since.
  virtual std::string& output() = 0;
  virtual void flush() = 0;
  virtual void cork() = 0;
  virtual bool uncork() = 0;
  // How much was appended since the beginning, whatever has left of it; and takes back what was
  // appended from there on and has not left.
  virtual std::uint64_t said() const = 0;
  virtual void unsay(std::uint64_t from) = 0;

  // Offers what was left unread to SessionHost::receive() again: the session can take more.
  virtual void resume_input() = 0;
  // Whether something was left unread; and whether it will be offered again by itself.
  virtual bool has_unread() const = 0;
  virtual bool input_pending() const = 0;

  // Whether the peer is known to have closed or half-closed: asks the system.
  virtual bool peer_has_left() const = 0;
  // Whether a signal, an event, or a piece of a report, may be appended to what the peer has not
  // taken yet. Who has no room for a signal is closed; who has none for an event misses it; a
  // report waits for SessionHost::continue_report().
  virtual bool has_room_for_signal() = 0;
  virtual bool has_room_for_event() const = 0;
  virtual bool has_room_for_report() const = 0;

  // The turn that did something for its session is at its end.
  virtual void on_turn_end() = 0;
  // The session is over, whatever becomes of the bytes.
  virtual void on_session_end() = 0;

  // Sends what there is, and closes. Or at once. Nothing is received after either.
  virtual void close_gently() = 0;
  virtual void close() = 0;
  // What only the two ends of its TLS connection know of it; empty: there is none.
  virtual std::string tls_binding() const { return {}; }
  // Closed, with nothing under way: it may be destroyed.
  virtual bool is_idle() const = 0;

  const ServerSession& session() const { return *session_; }
  // What others are shown of it, once it is open.
  ClientActivity& activity() { return *activity_; }
  // What was left unread is the beginning of a request, and not what waits behind one.
  bool has_half_a_request() const {
    return has_unread() && !input_pending() && !session_->blocked();
  }
  bool is_over() const { return is_over_; }
  // The session is over, and has not ended all that it had.
  bool is_ending() const { return is_ending_; }
  bool is_corked() const { return is_corked_; }
  // SessionHost::receive() has taken nothing: what is unread is to be offered again when some of
  // what is corked has been sent.
  bool is_held_back() const { return is_held_back_; }

 private:
  friend class SessionHost;

  // A grant to a wait, whose answer is in the output and has not left.
  struct HandOff {
    Grant grant{};
    std::uint64_t said = 0;      // before it
    ServerSession::Wait wait{};  // when the grant outlives the session
  };

  std::unique_ptr<ServerSession> session_;
  std::shared_ptr<ClientActivity> activity_;
  Position rests_on_ = 0;           // the output as a whole
  std::uint64_t corked_until_ = 0;  // of what was said: the part that is corked
  std::vector<HandOff> hand_offs_;
  std::shared_ptr<ReportRest> report_;  // the rest of it, which waits for room
  bool awaits_report_ = false;          // or a piece of one
  bool is_corked_ = false;
  bool is_held_back_ = false;
  bool input_ended_ = false;  // the peer sends no more
  bool is_over_ = false;      // the session; its last output may still be corked
  bool closes_ = false;       // when that has left
  bool is_ending_ = false;
  bool keeps_holds_ = false;  // as it ends
  ListHook<Transport> touched_;
};

}  // namespace lockd
