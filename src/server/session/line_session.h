// LineSession: one client's session on the line protocol. Its command `api` carries the calls of
// the JSON API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/line/line_framer.h"
#include "protocol/line/line_request.h"
#include "server/session/server_session.h"
#include "service/json_codec.h"

namespace lockd {

class LineSession final : public ServerSession {
 public:
  LineSession(SessionContext& context, SessionId id, Peer peer = {});

  Protocol protocol() const override { return Protocol::line; }
  std::size_t on_bytes(std::string_view unread, std::string& out) override;
  bool on_event(const SessionEvent& event, std::string& out) override;
  bool on_end(bool keep_holds, int* budget) override;
  std::size_t buffered() const override;
  bool can_close() override;

 private:
  // Requests.
  bool passes_on(const LineRequest& request);
  bool is_for_leader(const LineRequest& request);
  void execute(const RequestLines& lines, const ParsedRequest& parsed, std::string& out);
  void execute(const LineRequest& request, std::string& out);
  void authenticate(const LineRequest& request, std::string& out);
  void call_api(const LineRequest& request, std::string& out);
  HttpError find_route(const LineRequest& request, Target* target, RouteMatch* match) const;
  void hand_over(const ParsedRequest& parsed, std::string& out);
  void break_rule(Violation violation, std::string& out);
  void fail_attempt(std::string& out);
  void reject_client(Pause pause, std::string& out);

  // Replies.
  void reply(const Reply& reply, std::string& out);
  void reply_api(const Reply& reply, std::string& out);
  void write_api(const JsonReply& reply, std::string& out);
  void collect_report(const ReportPiece& piece, std::string& out);
  void log_reply(std::string_view line);
  void write_stats_piece(const ReportPiece& piece, std::string& out);

  // Events.
  void end_wait(const WaitResult& result, std::string& out);
  void push_event(std::string_view event, std::string_view json, std::string& out);
  void push_loss(const LostHold& lost, std::string& out);
  void use_certificate(const CertificateNames& names);
  void time_out(std::string& out);

  // Where a push goes: behind the line of a report that is not complete.
  std::string& push_to(std::string& out) { return is_inside_line_ ? held_pushes_ : out; }
  void enter(Phase phase);

  LineFramer framer_;
  std::uint64_t requests_ = 0;
  Phase phase_;
  Command command_ = Command::ping;  // of the request that is executed, or that blocks
  bool is_inside_line_ = false;      // the next piece of a report continues the line
  std::string held_pushes_;
  std::string api_report_;          // the pieces of the report that an `api` call awaits
  Fence lost_in_wait_ = 0;          // the latest grant of the awaited key that has been lost
  std::string_view lost_cause_;     // of lost_in_wait_
  std::unique_ptr<JsonCodec> api_;  // null before the first `api`
};

}  // namespace lockd
