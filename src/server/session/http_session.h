// HttpSession: one client's session over HTTP.
//
// The head of a request decides who asks and for what. A request that is rejected then is answered
// at once; if its body has not arrived, the connection closes instead of waiting for it.
//
// Requests are answered in order, also when they are pipelined. One that waits in a queue or for a
// report blocks those behind it. A stream of events or signals is the last reply of its connection:
// what the client sends behind it is not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/http/http_request.h"
#include "protocol/http/reply.h"
#include "protocol/http/request_params.h"
#include "protocol/http/request_parser.h"
#include "protocol/http/routes.h"
#include "server/session/server_session.h"
#include "service/json_codec.h"

namespace lockd {

class HttpSession final : public ServerSession {
 public:
  HttpSession(SessionContext& context, SessionId id, Peer peer = {})
      : ServerSession(context, id, std::move(peer)), codec_(context.options, context.clients) {}

  Protocol protocol() const override { return Protocol::http; }
  std::size_t on_bytes(std::string_view unread, std::string& out) override;
  bool on_event(const SessionEvent& event, std::string& out) override;
  bool on_end(bool keep_holds, int* budget) override;
  bool is_blocked() const override {
    return executor_.is_blocked() || executor_.is_streaming() || pause_ != Pause::none ||
           is_passed_on_;
  }
  bool needs_peer() const override { return executor_.is_waiting() || executor_.is_streaming(); }
  std::size_t buffered() const override;

 private:
  // A request that is being received.
  struct Incoming {
    RequestParser parser{};
    bool is_admitted = false;
    Target target{};
    RouteMatch match{};
  };

  // What the reply depends on in its request.
  struct Exchange {
    HttpCall call = HttpCall::none;
    bool keep_alive = false;
    bool http_1_0 = false;
    bool with_body = true;  // false for HEAD
    std::string allowed_origin{};
  };

  // Receiving.
  void advance(bool is_last, std::string& out);
  bool admit_head(Incoming& incoming, std::string& out);
  bool check_caller(const HttpRequest& request, std::string& out);
  bool check_method(const Incoming& incoming, std::string& out);
  bool check_rights(const Incoming& incoming, std::string& out);
  bool has_room_for_body(Incoming& incoming, std::string& out);
  bool is_allowed_host(std::string_view host) const;
  bool is_allowed_origin(const HttpRequest& request);
  bool authenticate(const HttpRequest& request);
  void fail_attempt();

  // Executing.
  void execute(const Incoming& incoming, bool was_complete, std::string& out);
  void call(const Incoming& incoming, std::string& out);
  bool passes_on(const HttpRequest& request);
  void answer_options(const Route* route, std::string& out);
  void answer_file(std::string_view path, std::string_view fields, std::string& out);

  // Replies.
  void reply(const Reply& reply, std::string& out);
  void write(const JsonReply& reply, std::string& out);
  void refuse(const HttpError& error, std::string& out, std::string fields = {}) {
    write(json_refusal(error, std::move(fields)), out);
  }
  void write_body(int status, std::string_view body, std::string& out, std::string_view fields,
                  std::string_view type);
  void begin_stream(std::string& out);
  void end_stream(std::string& out);
  void write_report_piece(const ReportPiece& piece, std::string& out);
  std::string common_fields(std::string_view cache_control) const;
  std::string reply_fields(int status) const;
  ReplyHead head(int status, std::string_view type, std::string_view fields);
  bool is_chunked() const { return !exchange_.http_1_0; }

  // Events.
  void push(std::string_view event, std::string_view json, std::string& out);
  void use_certificate(const CertificateNames& names);
  void refuse_attempt(std::string& out);
  void end_proxy(const HttpError& error, std::string& out);
  void time_out(bool in_request, std::string& out);
  void drain(std::string& out);

  std::unique_ptr<Incoming> incoming_;  // null between requests
  std::uint64_t requests_ = 0;
  Exchange exchange_;
  JsonCodec codec_;
  bool is_passed_on_ = false;  // a proxy has the connection, until the leader has replied
  bool is_in_report_ = false;  // the head of a reply in pieces has been written
  // Protected mode serves loopback only: the client may ask for the server's health, and learns why
  // it may not ask for more.
  bool is_foreign_ = false;
  PermitPtr certificate_permit_;  // null: the certificate is not listed, or there is none
  std::uint8_t failed_attempts_ = 0;
  bool has_shown_wrong_token_ = false;  // with the last attempt
};

}  // namespace lockd
