#include "lockctl/api/line_api.h"

#include <utility>

#include "client/stoppable_wait.h"
#include "lockctl/api/json.h"

namespace lockd::cli {

using client::BootClock;

LineApi::LineApi(client::ClientOptions options, std::string command)
    : is_cluster_(!options.cluster.empty()),
      patience_(options.connect.connect_timeout),
      command_(std::move(command)),
      client_(std::move(options)) {}

ApiReply LineApi::get(const std::string& path, const Parameters& parameters) {
  return call({.method = "GET", .path = path, .json = object_of(parameters)});
}

ApiReply LineApi::post(const std::string& path, const Parameters& parameters, Duration wait) {
  return call({.method = "POST", .path = path, .json = object_of(parameters), .wait = wait});
}

ApiReply LineApi::follow(const std::string& path, const Parameters& parameters, const Sink& sink) {
  ApiReply reply = get(path, parameters);
  while (reply.is_ok()) {
    const auto event = connection_.next_event(kDurationMax, interrupted_.get_token());
    require(event);
    sink(parse_json(*event, server()));
  }
  return reply;
}

ApiReply LineApi::call(const client::ApiCall& call) {
  const auto deadline = client::later(BootClock::now(), patience_);
  for (;;) {
    ApiReply reply = call_once(call);
    const bool leads = reply.is_ok() || refusal_of(reply).error != "not_leader";
    if (!is_cluster_ || leads || BootClock::now() >= deadline) return reply;
  }
}

ApiReply LineApi::call_once(const client::ApiCall& call) {
  auto opened = client_.connect("", interrupted_.get_token());
  require(opened);
  connection_ = std::move(*opened);
  auto answer = connection_.api(call, interrupted_.get_token());
  if (answer.outcome == client::Outcome::refused && answer.detail.empty()) {
    throw NoApi(kExitProtocol,
                command_ + " needs the server's HTTP port, since " + server() +
                    " lacks the command `api`: give --http HOST:PORT, set "
                    "LOCKD_HTTP_ADDR, or write http = \"HOST:PORT\" into lockd.toml");
  }
  require(answer);
  return {answer->status, std::move(answer->json)};
}

}  // namespace lockd::cli
