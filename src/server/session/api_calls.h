// The calls of the API for one session, whichever protocol carries them: HTTP its requests, the
// line protocol its command `api`.
//
// One call at a time. execute() answers it, or leaves it waiting for the end of a wait, for a
// report or for its signal to go out, of which the session is told as of its own. A stream is there
// beside the calls that follow it, until the session ends.
//
// Belongs to its session, and to that one's thread. What it lists, and who may, is the same for
// both: see kRoutes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "lockd/batch.h"
#include "protocol/http/http_request.h"
#include "protocol/http/request_params.h"
#include "protocol/http/routes.h"
#include "server/session/server_session.h"

namespace lockd {

class ApiCalls {
 public:
  // How the session tells its peer.
  class Replies {
   public:
    // The whole answer. `fields` are for HTTP: when to come again, where to.
    virtual void answer(int status, std::string_view json, std::string& out,
                        std::string_view fields = {}) = 0;
    // Whether a stream can begin; if not, it has been answered.
    virtual bool may_stream(std::string& out) = 0;
    virtual void begin_stream(std::string& out) = 0;
    virtual void push(std::string_view event, std::string_view json, std::string& out) = 0;

   protected:
    ~Replies() = default;
  };

  // All of them outlive it.
  ApiCalls(SessionContext& context, ServerSession& session, Replies& replies)
      : context_(context), session_(session), replies_(replies) {}

  // Whether such a call may leave a hold, a queue place or a stream.
  static bool takes_or_waits(HttpCall call);
  // Whether, while the server stops, it is too late for such a call.
  static bool is_too_late(const SessionContext& context, HttpCall call);
  // While the server follows: whether such a call is the leader's to answer.
  static bool is_for_leader(const SessionContext& context, HttpCall call, RequestParams& params);

  // `channel` is what stands for {channel} in the path. Not for the page's files.
  void execute(HttpCall call, std::string_view channel, RequestParams& params, std::string& out);
  void refuse(const HttpError& error, std::string& out, std::string_view fields = {});
  void refuse_draining(std::string& out);
  void refuse_without_leader(const HttpError& error, std::string& out);
  void refuse_report(std::string& out);  // too many wait
  bool refuse_params(const RequestParams& params, std::string& out);
  // Whether the client may not make such a call, whatever it is about; then it has been answered.
  bool refuse_unpermitted(const Route& route, std::string& out);

  bool is_busy() const { return state_ != State::idle; }
  bool is_waiting() const { return state_ == State::waiting; }
  bool is_reporting() const { return state_ == State::reporting; }
  bool is_streaming() const { return streams_; }
  bool listens() const { return listens_; }

  // As of ServerSession.
  void on_wait_done(const WaitResult& result, std::string& out);
  void on_published(std::size_t reached, std::string& out);
  void signalled(const Signal& signal, std::string& out);
  void on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out);
  // The report's last piece has come: the session answers with it. False when none is awaited.
  bool end_report();
  void end_stream() { streams_ = false; }
  // Gives up the wait.
  void drain();
  // The peer is gone. A grant that is on its way is taken back.
  void end();

 private:
  enum class State : std::uint8_t { idle, waiting, reporting, publishing };

  // Whether the client may not use this key, channel or pattern; then it has been answered.
  bool refuse_name(std::string_view name, std::string& out);
  bool refuse_pattern(std::string_view pattern, std::string& out);

  // Holds.
  void acquire(Kind kind, RequestParams& params, std::string& out);
  void renew(Kind kind, RequestParams& params, std::string& out);
  void release(Kind kind, RequestParams& params, std::string& out);
  void fence(RequestParams& params, std::string& out);
  // `json` names the keys; the rest is added.
  void answer_grant(JsonObject json, std::string_view holder, const Grant& grant, std::string& out);
  void answer_grant(std::string_view key, std::string_view holder, const Grant& grant,
                    std::string& out);
  // Adds `held_by` to a refusal: the hold of the key whose lease ends last. Adds nothing if the key
  // is free. A client without the right `read` sees neither the holder's address nor its note.
  void add_held_by(JsonObject& json, Kind kind, std::string_view key);
  void refuse_acquire(Kind kind, std::string_view key, Outcome outcome, const Conflict& conflict,
                      std::string& out);
  void refuse_hold(Outcome outcome, std::string& out);
  // Has the answer rest on that this server leads, by something appended from now on. False when it
  // follows: it is refused.
  bool rests_on_leading(std::string& out);
  static HttpError error_of(Outcome outcome);
  // Of what is refused as held although nobody holds it.
  static constexpr const char* kWaitedFor =
      "free, but the first of its queue waits for other keys too";
  JsonObject refusal(const HttpError& error);
  std::string advice(const HttpError& error) const;
  Duration lease(std::optional<std::int64_t> ttl_ms) const;
  std::int64_t ms_until(Time time) const;

  // Several keys in one step.
  bool refuse_names(const NamedKeys& keys, std::string& out);
  void acquire_all(RequestParams& params, std::string& out);
  void renew_all(RequestParams& params, std::string& out);
  void release_all(RequestParams& params, std::string& out);
  void end_wait_for_all(const WaitResult& result, std::string& out);
  void answer_grant(const NamedKeys& keys, std::string_view holder, const Grant& grant,
                    std::string& out);
  std::string conflicts_json(const NamedKeys& keys, Outcome outcome,
                             const std::vector<SetConflict>& conflicts);
  void refuse_all(const NamedKeys& keys, Outcome outcome, const std::vector<SetConflict>& conflicts,
                  std::string& out);

  // Signals.
  void publish(std::string_view channel, RequestParams& params, std::string& out);
  void answer_published(std::size_t reached, std::string& out);
  void listen(RequestParams& params, std::string& out);

  // An admin's.
  void revoke(RequestParams& params, std::string& out);
  void disconnect(RequestParams& params, std::string& out);
  void resize(RequestParams& params, std::string& out);
  std::string admin_name() const;

  // A cluster's.
  void inspect_cluster(RequestParams& params, std::string& out);
  void begin_snapshot(RequestParams& params, std::string& out);
  void transfer(RequestParams& params, std::string& out);
  bool refuse_without_cluster(std::string& out);
  bool refuse_successor(const ClusterStatus& status, const std::string& node, std::string& out);

  // Looking.
  void list_keys(RequestParams& params, std::string& out);
  void list_clients(RequestParams& params, std::string& out);
  void watch_events(RequestParams& params, std::string& out);
  void tell_history(RequestParams& params, std::string& out);
  void answer_health(HttpCall call, std::string& out);
  void ask(ReportRequest report);

  SessionContext& context_;
  ServerSession& session_;
  Replies& replies_;
  State state_ = State::idle;
  bool streams_ = false;
  bool listens_ = false;  // to signals
};

}  // namespace lockd
