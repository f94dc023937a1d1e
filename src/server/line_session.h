// One client's conversation on the line protocol, without its socket.
//
// Bytes go in, replies are appended to an output; requests are executed strictly in order, and
// nothing behind one that blocks starts before it has its reply. Used by one thread at a time: that
// of the worker whose connection it is. No clock, no I/O: whoever owns it says when the peer left,
// when a wait was settled, and when the server begins to stop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "lockd/batch.h"
#include "lockd/requests.h"
#include "protocol/line_framer.h"
#include "protocol/line_request.h"
#include "server/options.h"
#include "signals/signal_hub.h"

namespace lockd {

class LineSession {
 public:
  // What the sessions of one worker share. Outlives them.
  struct Service {
    const Options& options;
    SignalHub& hub;
    Batch& batch;  // of the present turn
    TokenSource& secrets;
    Listener& listener;    // hears of waits, by session id
    std::uint8_t mailbox;  // where signals for these sessions go
    bool draining = false;
  };

  LineSession(Service& service, SessionId id);

  // Executes the requests that are complete, until one blocks or the conversation ends. Returns how
  // many bytes were taken.
  std::size_t take_in(std::string_view unread, std::string& out);

  // A request blocks: nothing is taken in.
  bool blocked() const { return blocked_on_ != BlockedOn::nothing; }
  bool waits() const { return blocked_on_ == BlockedOn::wait; }
  bool wants_stats() const { return blocked_on_ == BlockedOn::stats; }
  // Ends what blocks: the wait, or the stats that were asked for.
  void settled(const Settled& settled, std::string& out);
  void stats(std::string_view json, std::string& out);

  // It is not let in, whatever it says.
  void turn_away(std::string& out);
  // The peer was silent for too long.
  void time_out(std::string& out) { refuse(Violation::read_timeout, out); }
  // The server begins to stop: what blocks is given up, and the next request is the last.
  void drain();
  // The peer is gone. `keep_holds`: its leases alone end what it holds. Nothing is called after it.
  void end(bool keep_holds);

  enum class Fate : std::uint8_t {
    open,
    closes,
    refused
  };  // refused: not let in; close, but not at once
  Fate fate() const { return fate_; }
  // The rule that was broken, when that is why it closes.
  Violation violation() const { return violation_; }

  // Whether silence is no reason to close it: it holds, waits or listens.
  bool may_be_silent();

  SessionId id() const { return session_.id; }

 private:
  enum class BlockedOn : std::uint8_t { nothing, wait, stats };

  void execute(const LineRequest& request, std::string& out);
  void acquire(const LineRequest& request, std::string& out);
  void enqueue(const LineRequest& request, std::string& out);
  void await_turn(const LineRequest& request, std::string& out);
  void release(const LineRequest& request, std::string& out);
  void renew(const LineRequest& request, std::string& out);
  void authenticate(const LineRequest& request, std::string& out);
  void listen(const LineRequest& request, std::string& out);
  void unlisten(const LineRequest& request, std::string& out);
  void reply(Command command, const Answer& answer, std::string& out);
  void refuse(Violation violation, std::string& out);
  SignalHub::Subscriber subscriber() const { return {service_.mailbox, session_.id}; }

  Service& service_;
  Session session_;
  LineFramer framer_;
  WaitId wait_;
  Phase phase_;
  Fate fate_ = Fate::open;
  Violation violation_ = Violation::none;
  BlockedOn blocked_on_ = BlockedOn::nothing;
  Command waiting_command_ = Command::acquire;
  bool listens_ = false;  // it has, at some time
};

}  // namespace lockd
