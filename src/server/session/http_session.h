// One client's session over HTTP.
//
// Who may ask, and for what, is decided when the head of a request is there. One that is refused
// then and has announced a body is answered at once, and closed: nobody waits for its body.
//
// Requests are answered in order, also when they are pipelined. One that waits in a queue, or for a
// report, blocks those behind it. A stream of events or signals is the last reply of its
// connection: what the client sends behind it is not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/http/http_request.h"
#include "protocol/http/reply.h"
#include "protocol/http/request_params.h"
#include "protocol/http/request_parser.h"
#include "protocol/http/routes.h"
#include "server/session/api_calls.h"
#include "server/session/server_session.h"

namespace lockd {

class HttpSession final : public ServerSession, private ApiCalls::Replies {
 public:
  HttpSession(SessionContext& context, SessionId id, Peer peer = {})
      : ServerSession(context, id, std::move(peer)),
        has_shown_token_(peer_.is_forwarded() || !context.access.asks_for_token()) {}

  Protocol protocol() const override { return Protocol::http; }
  std::size_t take_in(std::string_view unread, std::string& out) override;

  bool blocked() const override { return state_ != State::listening || calls_.is_busy(); }
  bool needs_peer() const override { return calls_.is_waiting() || state_ == State::streaming; }
  bool holds_outlive_it() const override { return true; }
  bool may_be_silent() override { return blocked(); }
  std::uint64_t request_under_way() const override { return incoming_ == nullptr ? 0 : requests_; }
  bool has_proved() const override { return has_shown_token_ && !is_foreign_; }
  void on_certificate(const CertificateNames& certificate) override;
  std::size_t buffered() const override;
  void end_pause(std::string& out) override;

  void on_wait_done(const WaitResult& result, std::string& out) override {
    calls_.on_wait_done(result, out);
  }
  void report(const ReportPiece& piece, std::string& out) override;
  void on_published(std::size_t reached, std::string& out) override {
    calls_.on_published(reached, out);
  }
  bool signalled(const Signal& signal, std::string& out) override {
    calls_.signalled(signal, out);
    return true;
  }
  void on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out) override {
    calls_.on_key_event(event, missed, out);
  }
  void ping(std::string& out) override;

  // Its peer is not on this machine, and protected mode serves nobody else: it may ask for the
  // server's health, and hears why it may not ask for more.
  void turn_away(std::string&) override { is_foreign_ = true; }
  void time_out(bool half, std::string& out) override;
  void drain(std::string& out) override;
  void resume(const HttpError& error, std::string& out) override;
  // Holds live by their leases alone. A grant that was on its way is taken back.
  bool end(bool keep_holds, int* budget) override;

 private:
  // For Cache-Control.
  static constexpr std::string_view kNotKept = "no-store";
  static constexpr std::string_view kAskedForAgain = "no-cache";

  // Beside what its call waits for.
  enum class State : std::uint8_t {
    listening,
    in_mid_report,  // more pieces are to come
    streaming,
    paused,  // before it hears that it is not let in
    passed,  // its successor passes the request on to the leader
  };

  // A request that is being received, and where it goes.
  struct Incoming {
    RequestParser parser{};
    bool is_admitted = false;  // its head was looked at, and what follows is wanted
    Target target{};
    RouteMatch match{};
  };

  // What the reply has to know of its request.
  struct Exchange {
    HttpCall call = HttpCall::none;
    bool keep_alive = false;
    bool http_1_0 = false;
    bool with_body = true;  // not to HEAD
    std::string allowed_origin{};
  };

  bool is_told_unasked() const override { return state_ == State::streaming; }

  // Getting to the call.
  void go_on(bool is_all, std::string& out);
  bool admit_head(Incoming& incoming, std::string& out);
  bool find_call(Incoming& incoming, std::string& out);
  bool has_room_for_body(Incoming& incoming, std::string& out);
  bool admit(const HttpRequest& request, HttpCall call, std::string& out);
  bool is_too_late() const;
  void begin_log(std::string_view request);
  void execute(const Incoming& incoming, std::string& out);
  bool is_allowed_host(std::string_view host) const;
  bool is_allowed_origin(const HttpRequest& request);
  bool find_permit(const HttpRequest& request);
  bool is_permitted(const Incoming& incoming, std::string& out);
  bool hands_over(const Incoming& incoming);
  void fail_attempt();
  void answer_options(const Route* route, std::string& out);
  void call(const Incoming& incoming, std::string& out);
  void answer_page(std::string_view path, std::string& out);
  void begin_report(std::string& out);

  // Replies, of a call and besides.
  void answer(int status, std::string_view json, std::string& out,
              std::string_view fields = {}) override;
  bool may_stream(std::string& out) override;
  void begin_stream(std::string& out) override;
  void push(std::string_view event, std::string_view json, std::string& out) override;
  void answer_with(int status, std::string_view body, std::string& out, std::string_view fields,
                   std::string_view type);
  void refuse(const HttpError& error, std::string& out, std::string_view fields = {});
  // What every reply has, and every stream; and all that the reply to this request has.
  std::string usual_fields(std::string_view cache_control) const;
  std::string reply_fields(int status) const;
  std::string_view report_type() const;
  std::string_view report_end() const;
  ReplyHead head(int status, std::string_view type, std::string_view fields);

  std::unique_ptr<Incoming> incoming_;  // while a request is being received
  std::uint64_t requests_ = 0;
  State state_ = State::listening;
  bool is_foreign_ = false;
  bool has_shown_token_;      // with one of its requests, or none is asked for
  PermitPtr by_certificate_;  // null: its certificate is not listed, or does not matter
  std::uint8_t failed_attempts_ = 0;
  bool has_shown_wrong_one_ = false;  // with its last request, if that failed
  Exchange exchange_;
  ApiCalls calls_{context_, *this, *this};
};

}  // namespace lockd
