// A client: asks at random, keeps a record of what it asked for, and holds the answers to it.
//
// It speaks one protocol all its life, over one connection after the other. Of one key it asks one
// thing at a time: of what is on its way together, nobody could say what should become of it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/acquisitions.h"
#include "simulation/promises.h"
#include "simulation/swarm.h"
#include "simulation/wire.h"

namespace lockd::simulation {

// What a client has around it.
class Outside {
 public:
  virtual Time now() const = 0;
  virtual Wire* connect(std::uint32_t client, bool is_http) = 0;  // null: nobody is there
  virtual void send(Wire& wire, std::string_view bytes) = 0;
  virtual void send_end(Wire& wire) = 0;
  virtual void reset(Wire& wire) = 0;
  // The server's disk failed at some moment since then: it may have refused anything, and the
  // refusal may be heard when the server is gone already.
  virtual bool server_failed_since(Time then) const = 0;
  // Likewise it was asked to stop, and whoever waited was told so.
  virtual bool server_stopped_since(Time then) const = 0;

 protected:
  ~Outside() = default;
};

class Client {
 public:
  Client(std::uint32_t number, bool is_http, Chance chance, const Swarm& swarm, Promises& promises,
         Acquisitions& acquisitions, Outside& outside);

  // Does one thing, or nothing.
  void act();
  // Asks for nothing new from now on.
  void retire() { retired_ = true; }

  // Throw crash::Violation for what may not be.
  void receive(std::string_view bytes);
  void receive_end();

  bool is_connected() const { return wire_ != nullptr; }
  bool waits_for_replies() const { return !asked_.empty(); }
  bool can_act() const {
    return wire_ == nullptr ? !retired_ : !doomed_ && !retired_ && asked_.size() < swarm_.pipeline;
  }
  std::uint64_t requests() const { return requests_; }
  const Wire* wire() const { return wire_; }
  std::string describe() const;

 private:
  enum class Asked : std::uint8_t {
    acquire,
    enqueue,
    await_turn,
    renew,
    release,
    fence,
    other,
    lie
  };
  struct Enqueued {
    bool granted = false;  // else it is a place in the queue
    Terms terms{};
    Duration ttl{};
    Fence largest_told = 0;  // of the key, when it was asked
    std::string secret{};    // that it was asked for by; empty: none
  };

  // One request on its way.
  struct Request {
    Asked what;
    Key key{};
    Fence fence = 0;       // of the hold it is about
    std::string holder{};  // in whose name
    std::string secret{};  // of a line: that it asks by; empty: none
    Terms terms{};
    Duration ttl{};
    Duration wait{};
    Time call{};
    Fence largest_told = 0;  // of the key, when it was asked
    Time certain_until{};    // of the hold it is about, when it was asked
    Time over_at{};          // likewise
    // Of several keys in one step: what it asks of each, and whether it names them with their
    // kinds.
    std::vector<Request> parts{};
    bool by_items = false;
  };

  // A reply, whatever the protocol.
  struct Reply {
    bool ok = false;
    std::string_view word{};   // the status, or the error's code
    std::string_view token{};  // of a grant
    Fence fence = 0;
    std::string_view body{};  // of HTTP
  };

  // Asking.
  void acquire();
  void enqueue();
  bool await_turn();  // false: it did not ask
  void renew();
  void release();
  Duration granted(Duration asked) const;
  void ask_fence();
  void signal();
  void lie();
  void leave();
  void ask(Request request, std::string_view text);
  void ask_http(Request request, std::string_view path, const std::string& body);
  void put_in_question(Request& request, const Known& known);
  std::optional<Key> free_key();
  Terms some_terms(Key key);
  // As the line protocol and JSON say them, behind what else a request has; nothing of what goes
  // without saying.
  static std::string line_of(const Terms& terms);
  static std::string json_of(const Terms& terms);
  Known* pick_hold();
  bool is_busy(Key key) const;
  static bool is_asked_of(const Request& request, Key key);

  // Asking for several keys in one step, each time under a name of its own.
  void ask_for_set();
  void acquire_set();
  void act_on_set(Asked what);
  void ask_about_set(Request set, std::string_view path, const std::string& members);
  void add_part(Request& set, Key key);
  std::string set_names() const { return std::string(kSetHolder) + holder_ + "."; }
  const Known* pick_hold_of_set(std::string_view names);
  std::vector<Key> some_of_set(const Known& known);

  // Asking by a secret that it chose, and again.
  std::string choose_secret(Request& request);
  std::string new_secret();
  void note_asked(Request& request, Acquisition& acquisition);
  bool may_ask_again(Key key, std::string_view secret);
  Acquisition* pick_again(Key key);
  void ask_again(Request& request, const Acquisition& acquisition);
  Acquisition* acquisition_of(const Request& request);
  bool may_be_passed_on(const Request& request);
  void settle(const Request& request, bool is_lost);
  void end_acquisition(const Request& request);

  // Hearing.
  void hear_line(std::string_view line);
  void hear_push(std::string_view line);
  std::size_t hear_http(std::string_view text);
  void hear(const Request& request, const Reply& reply);
  void hear_grant(const Request& request, const Reply& reply);
  bool is_told_of_anothers(const Request& request, Known* own);
  void hear_refusal(const Request& request, const Reply& reply);
  void check_full_queue(const Request& request, const Reply& reply);
  bool asked_otherwise(const Request& request, const Reply& reply);
  bool says_full(const Request& request, const Reply& reply) const;
  void leave_place(const Request& request);
  bool was_certain(const Request& request);
  void expect_over(const Request& request, const Reply& reply);
  void hear_about_hold(const Request& request, const Reply& reply);
  void hear_enqueued(const Request& request, const Reply& reply);
  void hear_about_set(const Request& set, const Reply& reply);
  void hear_set_refused(const Request& set, const Reply& reply);
  static bool is_named_missing(const Request& part, const Request& set, const Reply& reply);
  void leave_as_it_was(const Request& part);
  // An admin has ended the hold that it is about.
  bool is_revoked(const Request& request) const {
    return promises_.is_revoked(request.key, request.fence);
  }
  [[noreturn]] void complain(std::string_view rule, const Request& request,
                             std::string_view reply) const;
  // It has ended its connection, or will have.
  bool holds_may_go() const {
    return doomed_ && !is_http_ && swarm_.options.auto_release_on_disconnect;
  }
  void lose_connection();

  const std::uint32_t number_;
  const bool is_http_;
  Chance chance_;
  const Swarm& swarm_;
  Promises& promises_;
  Acquisitions& acquisitions_;
  Outside& outside_;
  bool retired_ = false;

  Wire* wire_ = nullptr;
  std::string holder_;  // by connection: what an old one still asks for is not in this one's name
  std::string unread_;
  std::deque<Request> asked_;
  std::map<std::pair<Kind, std::uint32_t>, Enqueued> enqueued_;
  bool listens_ = false;
  bool doomed_ = false;  // it has said what ends the connection
  std::uint64_t sets_named_ = 0;
  std::uint64_t signals_sent_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> signals_heard_;  // by channel
  std::uint64_t requests_ = 0;
};

}  // namespace lockd::simulation
