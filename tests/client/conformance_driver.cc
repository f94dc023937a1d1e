// Has the C++ client do the steps of scenarios.
//
// Each line of the input is a job, and is answered by a line of reports; jobs run side by side,
// each on a thread. The README of the suite says what is in them.
#include <boost/json.hpp>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockd/client/client.h"

namespace lockd::client {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// --- what is in a job ---

const json::value* member(const json::object& of, std::string_view name) {
  return of.if_contains(name);
}

std::string text(const json::object& of, std::string_view name) {
  const json::value* const found = member(of, name);
  return found == nullptr ? "" : json::value_to<std::string>(*found);
}

std::optional<std::int64_t> number(const json::object& of, std::string_view name) {
  const json::value* const found = member(of, name);
  return found == nullptr ? std::nullopt : std::optional(found->to_number<std::int64_t>());
}

Duration wait_of(const json::object& step) {
  const auto ms = number(step, "wait_ms");
  return ms ? Duration(milliseconds(*ms)) : kDurationMax;
}

ClientOptions client_options(const json::object& job) {
  ClientOptions options;
  std::vector<Address> addresses;
  for (const json::value& one : job.at("addresses").as_array()) {
    addresses.push_back(*Address::parse(std::string_view(one.as_string())));
  }
  (job.at("is_cluster").as_bool() ? options.cluster : options.servers) = addresses;
  options.connect.auth_token = text(job, "token");
  options.connect.auth_token_file = text(job, "token_file");
  const auto set = [&](Duration& timeout, std::string_view name) {
    if (const auto ms = number(job, name)) timeout = milliseconds(*ms);
  };
  set(options.connect.connect_timeout, "connect_timeout_ms");
  set(options.connect.reply_timeout, "reply_timeout_ms");
  set(options.release_timeout, "release_timeout_ms");
  return options;
}

// `key` outlives it.
LockRequest request_of(const json::object& step, std::string_view key) {
  KeyItem item(key);
  if (const auto limit = number(step, "limit")) {
    item.kind = Kind::semaphore;
    item.limit = static_cast<std::uint32_t>(*limit);
  }
  item.permits = static_cast<std::uint32_t>(number(step, "permits").value_or(1));
  const json::value* const shared = member(step, "shared");
  if (shared != nullptr && shared->as_bool()) item.mode = Mode::shared;
  LockRequest request{.keys = item, .wait = wait_of(step)};
  if (const auto lease = number(step, "lease_s")) request.lease = seconds(*lease);
  return request;
}

// --- what is in a report ---

json::object said(std::string_view outcome) { return {{"outcome", outcome}}; }

std::string_view word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return "done";
    case Outcome::queued: return "queued";
    case Outcome::timeout: return "not_acquired";
    case Outcome::refused: return "refused";
    case Outcome::already_enqueued: return "already_enqueued";
    case Outcome::not_enqueued: return "not_enqueued";
    case Outcome::lease_expired: return "lease_expired";
    case Outcome::max_locks: return "max_locks";
    case Outcome::max_waiters: return "max_waiters";
    case Outcome::max_holds: return "max_holds";
    case Outcome::limit_mismatch: return "limit_mismatch";
    case Outcome::mode_mismatch: return "mode_mismatch";
    case Outcome::permits_mismatch: return "permits_mismatch";
    case Outcome::storage: return "storage";
    case Outcome::not_leader: return "not_leader";
    case Outcome::denied: return "denied";
    case Outcome::unsupported: return "unsupported";
    case Outcome::draining: return "draining";
    case Outcome::unauthorized: return "unauthorized";
    case Outcome::lost: return "lost";
    case Outcome::unsure: return "lost";
    case Outcome::suspect: return "suspect";
    case Outcome::unreachable: return "unreachable";
    case Outcome::untrusted: return "untrusted";
    case Outcome::disconnected: return "disconnected";
    case Outcome::no_reply: return "no_reply";
    case Outcome::garbled: return "garbled";
    case Outcome::cancelled: return "cancelled";
    case Outcome::invalid: return "invalid";
  }
  return "unknown";
}

// This client tells people the cause, and programs only whether the server has said it.
std::string_view cause_of(const Status& loss) {
  if (loss.outcome == Outcome::unsure) return "unsure";
  if (loss.outcome == Outcome::unauthorized) return "unauthorized";
  if (loss.detail == "the lease ran out") return "expired";
  if (loss.detail == "an admin has ended it") return "revoked";
  return "refused";
}

json::object of_status(const Status& status, std::string_view done) {
  if (status) return said(done);
  json::object report = said(word_of(status.outcome));
  const bool is_lost = status.outcome == Outcome::lost || status.outcome == Outcome::unsure;
  if (is_lost) report["cause"] = cause_of(status);
  return report;
}

// --- steps ---

// A stop token that fires after a while, if the step says so.
class Cancellation {
 public:
  explicit Cancellation(const json::object& step) {
    const auto after = number(step, "cancel_after_ms");
    if (!after) return;
    thread_ = std::jthread([this, after = milliseconds(*after)](std::stop_token over) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait_for(lock, over, after, [] { return false; });
      if (!over.stop_requested()) source_.request_stop();
    });
  }

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

// Those of one job, and what they have made.
class Steps {
 public:
  explicit Steps(const json::object& job) : client_(client_options(job)) {}

  json::array run(const json::array& steps) {
    json::array reports;
    for (const json::value& step : steps) {
      const auto began = std::chrono::steady_clock::now();
      json::object report = perform(step.as_object());
      const auto took = std::chrono::steady_clock::now() - began;
      report["took_ms"] = std::chrono::duration_cast<milliseconds>(took).count();
      reports.push_back(std::move(report));
    }
    return reports;
  }

 private:
  json::object perform(const json::object& step) {
    const std::string what = text(step, "do");
    const Cancellation cancellation(step);
    if (what == "acquire") {
      const std::string key = text(step, "key");
      return keep(step, client_.acquire(request_of(step, key), cancellation.token()));
    }
    if (what == "acquire_all") return acquire_all(step, cancellation.token());
    if (what == "enqueue") return enqueue(step, cancellation.token());
    if (what == "wait") {
      return keep(step, place_of(step).wait(wait_of(step), cancellation.token()));
    }
    if (what == "give_up") {
      place_of(step) = QueuePlace();
      return said("done");
    }
    if (what == "check") return check(hold_of(step));
    if (what == "await_loss") return await_loss(hold_of(step), wait_of(step));
    if (what == "release") return release(hold_of(step));
    if (what == "sleep") {
      std::this_thread::sleep_for(milliseconds(*number(step, "ms")));
      return said("done");
    }
    return tell(what, step);
  }

  // Signals and statistics: over connections, each of which is the caller's own here.
  json::object tell(std::string_view what, const json::object& step) {
    if (what == "publish") {
      auto connection = client_.connect(text(step, "channel"));
      if (!connection) return of_status(connection, "");
      const auto count = connection->publish(text(step, "channel"), text(step, "payload"));
      json::object report = of_status(count, "count");
      if (count) report["count"] = *count;
      return report;
    }
    if (what == "stats") {
      auto connection = client_.connect("");
      if (!connection) return of_status(connection, "");
      const auto stats = connection->stats();
      json::object report = of_status(stats, "stats");
      // This client leaves the reading of it to its callers.
      boost::system::error_code unread;
      const json::value told = json::parse(stats.value, unread);
      if (stats && !told.is_object()) return said("garbled");
      if (stats) report["connections"] = told.at("connections");
      return report;
    }
    if (what == "listen") {
      auto connection = client_.connect("");
      if (!connection) return of_status(connection, "");
      listening_ = std::move(*connection);
      return of_status(listening_.listen(text(step, "pattern"), text(step, "group")), "done");
    }
    if (what != "next") throw std::invalid_argument("nobody knows " + std::string(what));
    const auto signal = listening_.next_signal(wait_of(step));
    if (signal.outcome == Outcome::timeout) return said("none");
    json::object report = of_status(signal, "signal");
    if (signal) report["channel"] = signal->channel;
    if (signal) report["payload"] = signal->payload;
    return report;
  }

  json::object acquire_all(const json::object& step, std::stop_token stop) {
    const auto keys = json::value_to<std::vector<std::string>>(step.at("keys"));
    const std::vector<KeyItem> items(keys.begin(), keys.end());
    LockRequest request{.keys = items, .wait = wait_of(step)};
    if (const auto lease = number(step, "lease_s")) request.lease = seconds(*lease);
    return keep(step, client_.acquire(request, std::move(stop)));
  }

  json::object enqueue(const json::object& step, std::stop_token stop) {
    const std::string key = text(step, "key");
    auto place = client_.enqueue(request_of(step, key), std::move(stop));
    if (!place) return of_status(place, "");
    const bool is_granted = place->is_granted();
    place_of(step) = std::move(*place);
    return said(is_granted ? "granted" : "queued");
  }

  json::object keep(const json::object& step, Result<HeldLock> held) {
    if (!held) return of_status(held, "");
    json::object report = said("acquired");
    report["fence"] = std::to_string(held->fence());
    report["lease_s"] = held->lease().count();
    report["queued_again"] = held->queued_again();
    hold_of(step) = std::move(*held);
    return report;
  }

  static json::object check(HeldLock& held) {
    if (held.key().empty()) return said("nothing");
    if (held.is_held()) return said("held");
    const auto loss = held.loss();
    if (loss && loss->outcome == Outcome::suspect) return said("suspect");
    json::object report = said("lost");
    report["cause"] = loss ? cause_of(*loss) : "released";
    return report;
  }

  static json::object release(HeldLock& held) {
    const Status status = held.release();
    return held.loss() ? check(held) : of_status(status, "released");
  }

  static json::object await_loss(HeldLock& held, Duration wait) {
    if (held.key().empty()) return said("nothing");
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, held.lost(), wait, [] { return false; });
    return check(held);
  }

  HeldLock& hold_of(const json::object& step) { return holds_[text(step, "hold")]; }
  QueuePlace& place_of(const json::object& step) { return places_[text(step, "place")]; }

  Client client_;
  std::map<std::string, HeldLock> holds_;
  std::map<std::string, QueuePlace> places_;
  Connection listening_;
};

void serve() {
  std::mutex output;
  const auto say = [&](const json::object& what) {
    const std::lock_guard lock(output);
    std::cout << json::serialize(what) << std::endl;
  };
  say({{"lacks", {"holder", "listen_again", "max_hold", "permits_without_lease"}}});
  std::vector<std::jthread> running;
  for (std::string line; std::getline(std::cin, line);) {
    running.emplace_back([&say, line] {
      const json::object job = json::parse(line).as_object();
      say({{"id", job.at("id")}, {"reports", Steps(job).run(job.at("steps").as_array())}});
    });
  }
}

}  // namespace
}  // namespace lockd::client

int main() { lockd::client::serve(); }
