// Transport: where one session's bytes come from and go to. A socket, a channel of a link between
// servers, or a wire of the simulation.
//
// Owned by the SessionHost, together with the session; used by its thread only.
#pragma once

#include <cstdint>
#include <string>

namespace lockd {

struct HostedSession;

class Transport {
 public:
  virtual ~Transport() = default;

  // The session that the transport serves. Called once, before everything else.
  virtual void attach(HostedSession& hosted) = 0;

  // Output is appended here. It leaves by flush(), all of it; or by cork(), which marks what there
  // is, and uncork(), which sends what was marked and returns whether more was appended since.
  virtual std::string& output() = 0;
  virtual void flush() = 0;
  virtual void cork() = 0;
  virtual bool uncork() = 0;
  // The number of bytes appended so far. roll_back_output() removes those from there on, as far as
  // they have not left.
  virtual std::uint64_t bytes_written() const = 0;
  virtual void roll_back_output(std::uint64_t from) = 0;

  // Offers unread input to SessionHost::receive() again: the session can take more.
  virtual void resume_input() = 0;
  virtual bool has_unread() const = 0;
  // The unread input will be offered again without resume_input().
  virtual bool input_pending() const = 0;
  // Asks the system whether the peer has closed or half-closed.
  virtual bool peer_has_left() const = 0;

  // Whether the output has room for a signal (else the session is closed), for an event (else the
  // client misses it), or for a piece of a report (which waits for continue_report()).
  enum class Push : std::uint8_t { signal, event, report };
  virtual bool has_room_for(Push what) = 0;

  // The turn in which the session was run ends. The session is over, whatever happens to the bytes.
  virtual void on_turn_end() = 0;
  virtual void on_session_end() = 0;

  // Sends what there is, and closes; or closes at once. Nothing is received after either.
  virtual void close_gently() = 0;
  virtual void close() = 0;
  // Closed, with no operation in progress: the transport can be destroyed.
  virtual bool is_idle() const = 0;

  // Bytes that only the two ends of its TLS connection know; empty without TLS.
  virtual std::string tls_binding() const { return {}; }
};

}  // namespace lockd
