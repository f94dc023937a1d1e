// What one client's session asks of the leader, while its server follows: what it has no answer to
// yet, what it listens to, where it queues, and how all that is asked again of whoever leads next.
//
// Belongs to its session, and to that one's thread. Without a clock and without a socket: the time
// is given, and the Forwarder carries what is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/types.h"
#include "protocol/http/routes.h"
#include "protocol/line/line_request.h"
#include "server/forward/forwarder.h"
#include "server/forward/peer_frame.h"

namespace lockd {

// One request, as it is asked of the leader.
struct LeaderRequest {
  Command command = Command::ping;
  HttpCall call = HttpCall::none;  // of an `api`; of a signal that came by one
  std::string head{};              // the first two lines
  std::string argument{};          // the third, without how long it may wait
  std::string key{};
  Kind kind = Kind::lock;
  Duration wait{};
  bool waits = false;      // `wait` is part of the request
  bool may_repeat = true;  // it may happen twice: then it was once
};

class LeaderChannel {
 public:
  // The session, to which the leader's answers go. Lines come without their ends.
  class Client {
   public:
    virtual void on_leader_answer(const LeaderRequest& request, std::string_view line,
                                  std::string& out) = 0;
    virtual void on_leader_push(std::string_view line, std::string& out) = 0;
    // Nobody leads; or the leader was lost, and what was asked may have been done.
    virtual void on_no_leader(const LeaderRequest& request, std::string& out) = 0;
    virtual void on_no_answer(const LeaderRequest& request, std::string& out) = 0;
    // This server leads. `request` is what is asked now: first what it listens to and where it
    // queues, which is nothing to tell the client of.
    virtual void execute_here(const LeaderRequest& question, std::string_view request,
                              std::string& out) = 0;
    virtual void prepare_here(std::string_view request) = 0;
    virtual void on_closed_by_leader() = 0;

   protected:
    ~Client() = default;
  };

  // All of them outlive it.
  LeaderChannel(Forwarder& forwarder, NewsReader& reader, SessionId id, Client& client)
      : forwarder_(forwarder),
        reader_(reader),
        id_(id),
        client_(client),
        generation_(forwarder.generation()) {}

  // Who the client is; again when that has changed. The leader hears of it with the next request:
  // who says it again and again costs nobody anything.
  void introduce(const ForwardedClient& client);
  // Precondition: it has been introduced, and is asking nothing.
  void ask(LeaderRequest request, Time now);
  bool is_asking() const { return request_.has_value(); }
  // What it was told, as far as that says: whether it holds or waits for anything there; and
  // whether it listens.
  bool has_state(Time now);
  bool listens() const { return !subscriptions_.empty(); }
  // So much is kept of what its client has, whatever that does.
  std::size_t remembered() const { return held_.size() + enqueued_.size() + subscriptions_.size(); }

  void take(const LeaderNews& news, Time now, std::string& out);
  // So many bytes of what it was told are with the client's peer.
  void acknowledge(std::uint64_t bytes);
  // The client sends no more, and all that it sent was asked.
  void end_input();
  // It is gone; `keep_holds`: that is no disconnect.
  void end(bool keep_holds);

 private:
  // By an `e`.
  struct Place {
    std::string request{};
    std::string token{};  // it was granted at once; empty: it is in the queue
  };

  void leave(LeaderMail mail);
  void ask_again(Time now);
  void say_who();
  void take_line(std::string_view line, Time now, std::string& out);
  void take_unheard(std::string_view line);
  void learn(const LeaderRequest& question, std::string_view line, Time now);
  void learn_hold(const std::string& token, Time until);
  void learn_renewal(const std::string& token, Time until, Time now);
  void learn_place(const LeaderRequest& question, const std::string& token);
  void learn_end(const LeaderRequest& question, const std::string& token);
  void go_on_here(Time now, std::string& out);
  std::string text_of(const LeaderRequest& request, Time now) const;
  std::vector<std::string_view> standing() const;

  Forwarder& forwarder_;
  NewsReader& reader_;
  const SessionId id_;
  Client& client_;
  std::uint64_t generation_;  // of the link that it asks by; 0: none is known to be there
  bool input_ended_ = false;
  std::optional<LeaderRequest> request_;
  Time deadline_{};          // of its wait
  bool is_sent_ = false;     // it may have reached the leader
  std::size_t unheard_ = 0;  // so many answers are to what was asked again, and are not told
  std::size_t unheard_subscriptions_ = 0;  // of these, the first
  std::string introduction_;               // which the leader has yet to hear
  std::string half_line_;
  std::set<std::string> subscriptions_;    // the requests that made them
  std::map<std::string, Place> enqueued_;  // by kind and key
  bool has_more_places_ = false;           // or had: too many to ask for all of them again
  std::map<std::string, Time> held_;       // by token: when it has ended, at the latest
  Time others_held_until_{};               // holds beyond so many, all together
};

}  // namespace lockd
