// The calls of HttpSession that look on, and those of signals.
#include <utility>

#include "base/json_text.h"
#include "base/pattern.h"
#include "base/text.h"
#include "protocol/http/web_files.h"
#include "server/readiness.h"
#include "server/session/http_session.h"

namespace lockd {
namespace {

constexpr std::string_view kStreamType = "text/event-stream";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";

constexpr std::int64_t kKeysPerPageMax = 1000;
constexpr std::int64_t kKeysPerPage = 100;

// A line client's payload may be any bytes; JSON may not.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

// Signals.

void HttpSession::publish(std::string_view channel, std::string_view body, std::string& out) {
  RequestParams params = RequestParams::of_json(body);
  const std::string_view payload = params.text("payload");
  if (!is_channel(channel)) params.refuse("the channel", "must be a name without wildcards");
  if (!is_payload(channel, payload)) {
    params.refuse("payload", "must not be blank, nor have line feeds, nor be too long for a line");
  }
  if (refuse_params(params, out)) return;

  JsonObject json;
  json.add("delivered", publish_signal(channel, payload));
  answer(200, json.finish(), out);
}

void HttpSession::listen(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  const std::string_view pattern = params.text("pattern");
  const std::string_view group = params.text_if_given("group").value_or("");
  if (!is_pattern(pattern)) {
    params.refuse("pattern", "must be a name in which * and > are whole tokens, > the last");
  }
  if (!group.empty() && !is_name(group)) {
    params.refuse("group", "must be 1 to 256 bytes of UTF-8 without control characters");
  }
  if (refuse_params(params, out)) return;
  if (!exchange_.with_body) return answer(200, "", out, {}, kStreamType);
  if (!context_.hub.listen(subscriber(), pattern, group)) {
    return refuse({429, "max_subscriptions", "this connection has too many"}, out);
  }
  listens_ = true;
  begin_stream(out);
}

void HttpSession::signalled(const Signal& signal, std::string& out) {
  if (state_ != State::streaming) return;
  JsonObject json;
  json.add("channel", signal.channel());
  json.add("payload", as_utf8(signal.payload(), kReplacement));
  write_stream_event(out, !exchange_.http_1_0, "sig", json.finish());
}

// Keys.

void HttpSession::list_keys(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  KeyQuery query;
  query.prefix = params.text_if_given("prefix").value_or("");
  query.key = params.text_if_given("key").value_or("");
  query.keys_max = static_cast<std::uint32_t>(
      params.number_if_given("limit", 1, kKeysPerPageMax).value_or(kKeysPerPage));
  query.with_idle = params.truth("idle");
  if (const auto order = params.text_if_given("order")) {
    query.by_waiters = *order == "waiters";
    if (!query.by_waiters) params.refuse("order", "must be waiters");
  }
  if (const auto after = params.text_if_given("after")) {
    if (!parse_place(*after, &query.from)) {
      params.refuse("after", "must be the `next` of an earlier page");
    }
  }
  if (refuse_params(params, out)) return;
  ask({.what = ReportRequest::What::keys, .keys = std::move(query)});
}

void HttpSession::watch_events(const Target& target, std::string& out) {
  RequestParams params = RequestParams::of_query(target.query);
  event_prefix_ = params.text_if_given("prefix").value_or("");
  if (refuse_params(params, out)) return;
  if (!exchange_.with_body) return answer(200, "", out, {}, kStreamType);
  context_.desk.watch_events(id());
  begin_stream(out);
}

void HttpSession::on_key_events(const KeyEventJson& occurrence, std::string& out) {
  if (state_ != State::streaming || !occurrence.key.starts_with(event_prefix_)) return;
  if (missed_ > 0) {
    JsonObject json;
    json.add("count", std::exchange(missed_, 0));
    write_stream_event(out, !exchange_.http_1_0, "missed", json.finish());
  }
  write_stream_event(out, !exchange_.http_1_0, occurrence.event, occurrence.data);
}

// Streams. The head is sent at once: it says that whatever happens from now on will be told.

void HttpSession::begin_stream(std::string& out) {
  exchange_.keep_alive = false;
  const std::string fields = usual_fields(kNotKept);
  write_stream_head(out, head(200, kStreamType, fields));
  fate_ = Fate::open;  // it closes when the client does, or when the server stops
  state_ = State::streaming;
}

void HttpSession::ping(std::string& out) {
  if (state_ == State::streaming) write_stream_ping(out, !exchange_.http_1_0);
}

// Reports.

void HttpSession::ask(ReportRequest report) {
  state_ = State::reporting;
  context_.desk.ask(id(), std::move(report));
}

void HttpSession::report(std::string_view text, std::string& out) {
  if (state_ != State::reporting) return;
  state_ = State::listening;
  answer(200, text, out, {}, exchange_.call == HttpCall::metrics ? kMetricsType : kJsonType);
}

void HttpSession::answer_health(std::string& out) {
  std::string_view problem;
  if (exchange_.call == HttpCall::ready) {
    problem = why_not_ready(context_.draining, context_.engine.journal_state());
  } else if (exchange_.call == HttpCall::leader) {
    const bool follows = context_.engine.journal_state() == Journal::State::following;
    problem =
        follows ? "not_leader" : why_not_ready(context_.draining, context_.engine.journal_state());
    // As with everything a leader says: not before it is certain to be one.
    if (problem.empty() && context_.cluster != nullptr) context_.batch.fence("leader");
  }
  JsonObject json;
  json.add("status", problem.empty() ? "ok" : problem);
  answer(problem.empty() ? 200 : 503, json.finish(), out);
}

void HttpSession::answer_page(std::string_view path, std::string& out) {
  const WebFile* file = find_web_file(path);
  answer(200, file->content, out, kPageFields, file->type);
}

}  // namespace lockd
