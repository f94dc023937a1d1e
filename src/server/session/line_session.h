// One client's session on the line protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockd/requests.h"
#include "protocol/http/routes.h"
#include "protocol/line/line_framer.h"
#include "protocol/line/line_request.h"
#include "server/session/api_calls.h"
#include "server/session/server_session.h"

namespace lockd {

class LineSession final : public ServerSession, private ApiCalls::Replies {
 public:
  LineSession(SessionContext& context, SessionId id, Peer peer = {});

  Protocol protocol() const override { return Protocol::line; }
  std::size_t take_in(std::string_view unread, std::string& out) override;

  bool blocked() const override {
    return blocked_on_ != BlockedOn::nothing || (calls_ != nullptr && calls_->is_busy());
  }
  bool needs_peer() const override { return blocked_on_ == BlockedOn::wait || call_waits(); }
  bool holds_outlive_it() const override {
    return !context_.options.auto_release_on_disconnect || call_waits();
  }
  bool may_be_silent() override;
  std::uint64_t request_under_way() const override {
    return is_inside_request_ && !blocked() ? requests_ + 1 : 0;
  }
  bool has_proved() const override { return phase_ != Phase::before_auth; }
  void on_certificate(const CertificateNames& certificate) override;
  std::size_t buffered() const override {
    return ServerSession::buffered() + held_pushes_.size() + call_report_.size();
  }
  void end_pause(std::string& out) override;

  void on_wait_done(const WaitResult& result, std::string& out) override;
  void report(const ReportPiece& piece, std::string& out) override;
  void on_published(std::size_t reached, std::string& out) override;
  bool signalled(const Signal& signal, std::string& out) override;
  bool on_lost(const LostHold& lost, std::string& out) override;
  void on_key_event(const KeyEventJson& event, std::uint64_t missed, std::string& out) override;

  void turn_away(std::string& out) override;
  void time_out(bool, std::string& out) override;
  void cut_short() override { note(Violation::disconnected); }
  void drain(std::string& out) override;
  bool may_go() override;
  // A grant that was on its way is taken back, also when holds are kept.
  bool end(bool keep_holds, int* budget) override;

 private:
  enum class BlockedOn : std::uint8_t { nothing, wait, report, signal };

  bool is_told_unasked() const override;
  bool may(const LineRequest& request) const;
  void execute(const LineRequest& request, std::string& out);
  void acquire(const LineRequest& request, std::string& out);
  void enqueue(const LineRequest& request, std::string& out);
  void await_turn(const LineRequest& request, std::string& out);
  void release(const LineRequest& request, std::string& out);
  void renew(const LineRequest& request, std::string& out);
  void authenticate(const LineRequest& request, std::string& out);
  void name_client(const LineRequest& request, std::string& out);
  void listen(const LineRequest& request, std::string& out);
  void unlisten(const LineRequest& request, std::string& out);
  void publish(const LineRequest& request, std::string& out);
  void barrier(std::string& out);
  void name_session(ClientIdentity identity);
  bool hands_over(const LineRequest& request);
  bool is_for_leader(const LineRequest& request) const;
  void call(const LineRequest& request, std::string& out);
  HttpError find_call(const LineRequest& request, Target* target, RouteMatch* match) const;
  void report_to_call(const ReportPiece& piece, std::string& out);
  bool call_waits() const { return calls_ != nullptr && calls_->is_waiting(); }
  void reply_or_wait(const LineRequest& request, const Answer& answer, std::string& out);
  void reply(Command command, const Answer& answer, std::string& out);
  void say(Command command, Outcome outcome, std::string& out);
  void refuse(Violation violation, std::string& out);
  void fail_attempt(std::string& out);
  void turn_out(Pause pause, std::string& out);
  void begin_log(std::string_view command, const ParsedRequest& parsed);
  void log_reply(std::string_view reply);
  bool is_too_late(const ParsedRequest& parsed) const;
  void refuse_draining(const ParsedRequest& parsed, std::string& out);
  Duration lease(const LineRequest& request) const;
  Holder holder_of(const LineRequest& request);
  std::string& push_to(std::string& out) { return is_inside_line_ ? held_pushes_ : out; }

  // Of a call.
  void answer(int status, std::string_view json, std::string& out, std::string_view) override;
  bool may_stream(std::string& out) override;
  void begin_stream(std::string& out) override;
  void push(std::string_view event, std::string_view json, std::string& out) override;

  LineFramer framer_;
  std::uint64_t requests_ = 0;      // that came whole
  bool is_inside_request_ = false;  // the next has begun
  Phase phase_;
  BlockedOn blocked_on_ = BlockedOn::nothing;
  Command waiting_command_ = Command::acquire;  // that waits, or did
  bool listens_ = false;                        // it has, at some time
  bool is_inside_line_ = false;                 // of a report, whose next piece is to come
  std::string held_pushes_;                     // until it is not
  Fence lost_in_wait_ = 0;                      // the latest of the key that it waits for
  std::string_view lost_cause_;                 // of that
  std::unique_ptr<ApiCalls> calls_;             // from the first on
  std::string call_report_;                     // what has come of the report that its call awaits
};

}  // namespace lockd
