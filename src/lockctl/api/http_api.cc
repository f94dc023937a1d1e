#include "lockctl/api/http_api.h"

#include <algorithm>

#include "lockctl/api/http_client.h"
#include "lockctl/api/json.h"

namespace lockd::cli {
namespace {

// Between one look at all servers and the next.
constexpr Duration kPauseMin = std::chrono::milliseconds(10);
constexpr Duration kPauseMax = std::chrono::milliseconds(200);
// Nobody looks for a leader for longer, whatever the settings say.
constexpr Duration kPatienceMax = std::chrono::hours(24);

}  // namespace

HttpApi::HttpApi(const std::vector<HttpAddress>& addresses, const client::ConnectOptions& options)
    : patience_(std::min<Duration>(options.connect_timeout, kPatienceMax)) {
  for (const HttpAddress& address : addresses) {
    servers_.push_back(std::make_unique<HttpClient>(address, options));
  }
}

ApiReply HttpApi::get(const std::string& path, const Parameters& parameters) {
  const std::string target = path + query_of(parameters);
  return at_leader([&](HttpClient& server) { return server.get(target); });
}

ApiReply HttpApi::post(const std::string& path, const Parameters& parameters, Duration wait) {
  const std::string json = object_of(parameters);
  return at_leader([&](HttpClient& server) { return server.post(path, json, wait); });
}

ApiReply HttpApi::follow(const std::string& path, const Parameters& parameters, const Sink& sink) {
  const std::string target = path + query_of(parameters);
  const auto take = [&](const StreamEvent& event) {
    auto json = parse_json(event.data, server());
    if (json.is_object()) json.as_object()["event"] = event.name;
    sink(json);
  };
  return at_leader([&](HttpClient& server) { return server.follow(target, take); });
}

void HttpApi::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  interruption_.notify_all();
  for (const auto& server : servers_) server->interrupt();
}

// Whoever has said that it leads may say otherwise a moment later: the next is looked for.
ApiReply HttpApi::at_leader(const std::function<ApiReply(HttpClient&)>& ask) {
  if (servers_.size() == 1) return ask(*servers_.front());
  const auto deadline = Clock::now() + patience_;
  for (;;) {
    find_leader(deadline);
    ApiReply reply = ask(*servers_[here_]);
    const bool leads = reply.is_ok() || refusal_of(reply).error != "not_leader";
    if (leads || Clock::now() >= deadline) return reply;
  }
}

// One after the other, beginning with who was asked last, and all of them again after a pause.
void HttpApi::find_leader(Clock::time_point deadline) {
  const auto parts = static_cast<Duration::rep>(servers_.size() + 1);
  // Whoever has said once that it does not lead is there: the last look may be too short to hear
  // it.
  ExitCode code = kExitUnavailable;
  for (Duration pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    std::string lines;
    for (std::size_t asked = 0; asked < servers_.size(); ++asked) {
      const auto left = std::max<Duration>(deadline - Clock::now(), kPauseMin);
      const auto failure = why_not_leader(left / parts);
      if (!failure) return;
      if (failure->code() != kExitUnavailable) code = failure->code();
      lines += (lines.empty() ? "" : "; ") + std::string(failure->what());
      here_ = (here_ + 1) % servers_.size();
    }
    if (Clock::now() + pause >= deadline) throw Failure(code, "no server leads: " + lines);
    rest(pause);
  }
}

std::optional<Failure> HttpApi::why_not_leader(Duration patience) {
  try {
    if (servers_[here_]->get_within(patience, "/leader").is_ok()) return std::nullopt;
    return Failure(kExitTemporary, server() + " does not");
  } catch (const Failure& failure) {
    return failure;
  }
}

void HttpApi::rest(Duration pause) {
  std::unique_lock lock(mutex_);
  if (interruption_.wait_for(lock, pause, [&] { return interrupted_; })) {
    throw Failure(kExitUnavailable, "interrupted");
  }
}

}  // namespace lockd::cli
