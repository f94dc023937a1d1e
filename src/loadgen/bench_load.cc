#include "loadgen/bench_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "loadgen/bench_connection.h"
#include "loadgen/bench_dialogue.h"
#include "lockctl/http/fetch.h"
#include "lockctl/output/failure.h"
#include "lockctl/tls_settings.h"
#include "lockctl/values.h"
#include "lockd/client/client.h"

namespace lockd::cli {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Server {
  client::Address address;
  bool tls = false;
};

std::vector<Server> servers_of(const LoadPlan& plan, const Settings& settings) {
  std::vector<Server> servers;
  if (plan.http) {
    for (const HttpAddress& http : settings.http_servers)
      servers.push_back({http.address, http.tls});
  } else {
    for (const client::Address& address : servers_to_ask(settings)) {
      servers.push_back({address, settings.connect.tls.has_value()});
    }
  }
  return servers;
}

// A worker's connections, all to the server that has its keys, and the rounds it has yet to begin.
struct LoadWorker {
  std::size_t server = 0;
  std::vector<std::unique_ptr<LoadConnection>> connections;
  std::uint64_t rounds_left = 0;
};

class Load;

// One round at a time, on one key.
class Lane {
 public:
  Lane(Load& load, LoadWorker& worker, std::unique_ptr<Dialogue> dialogue)
      : load_(load), worker_(worker), dialogue_(std::move(dialogue)) {}

  // Begins a round if the worker has one left.
  void go_on();

 private:
  void take_grant(std::string_view reply);
  void take_release(std::string_view reply);
  [[noreturn]] static void refuse(const char* what, std::string_view reply);

  Load& load_;
  LoadWorker& worker_;
  const std::unique_ptr<Dialogue> dialogue_;
  LoadConnection* connection_ = nullptr;  // of this round
  std::uint64_t number_ = 0;
  Clock::time_point asked_at_;
  Clock::time_point granted_at_;
};

class Load {
 public:
  Load(const LoadPlan& plan, const Settings& settings)
      : plan_(plan), settings_(settings), servers_(servers_of(plan, settings)) {
    if (std::any_of(servers_.begin(), servers_.end(), [](const Server& one) { return one.tls; })) {
      tls_.emplace(make_tls_context(settings.connect.tls.value_or(client::TlsOptions{})));
    }
    for (std::uint64_t i = 0; i < plan.workers; ++i) add_worker(i);
  }

  LoadFigures run(const OnProgress& on_progress) {
    if (plan_.warmup > 0) run_phase(plan_.warmup, [](std::uint64_t) {});
    stats_ = {};
    run_phase(plan_.rounds, on_progress);
    return stats_;
  }

  void count_acquire(Clock::duration took) { stats_.acquire.record(took); }
  void count_round(Clock::duration release, Clock::duration whole) {
    stats_.release.record(release);
    stats_.round.record(whole);
    ++stats_.rounds;
  }

 private:
  void add_worker(std::uint64_t number) {
    LoadWorker& worker = *workers_.emplace_back(std::make_unique<LoadWorker>());
    const std::string name = plan_.key + '_' + std::to_string(number);
    const std::string first = plan_.shared_key ? plan_.key : name;
    worker.server = client::shard_of(first, servers_.size());
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(plan_.connections, 1); ++i) {
      worker.connections.push_back(connect(servers_[worker.server]));
    }
    std::uint64_t suffix = 0;
    for (std::uint64_t i = 0; i < plan_.pipeline; ++i) {
      const std::string key = i == 0 ? first : key_of(name, worker.server, suffix);
      lanes_.push_back(std::make_unique<Lane>(*this, worker, dialogue(key, name, worker)));
    }
  }

  // Another key of the same worker, on the same server.
  std::string key_of(const std::string& name, std::size_t server, std::uint64_t& suffix) const {
    for (;;) {
      std::string key = name + '_' + std::to_string(suffix++);
      if (client::shard_of(key, servers_.size()) == server) return key;
    }
  }

  std::unique_ptr<LoadConnection> connect(const Server& server) {
    return LoadConnection::open(loop_,
                                {.address = server.address,
                                 .options = settings_.connect,
                                 .tls = server.tls ? &*tls_ : nullptr,
                                 .reply_size = plan_.http ? http_reply_size : line_reply_size,
                                 .sends_secret = !plan_.http});
  }

  std::unique_ptr<Dialogue> dialogue(const std::string& key, const std::string& name,
                                     const LoadWorker& worker) const {
    const DialogueTerms terms{.timeout_s = plan_.timeout_s,
                              .lease_s = plan_.lease_s,
                              .host = servers_[worker.server].address.to_string(),
                              .token = settings_.connect.auth_token};
    if (!plan_.http) return Dialogue::over_line(key, terms);
    // Unlike any other bench: a holder that asks again would get what it has.
    return Dialogue::over_http(key, name + '.' + std::to_string(::getpid()), terms);
  }

  void run_phase(std::uint64_t rounds, const OnProgress& on_progress) {
    for (const auto& worker : workers_) worker->rounds_left = rounds;
    stats_.rounds = 0;
    const std::uint64_t total = rounds * workers_.size();
    const Clock::time_point start = Clock::now();
    for (const auto& lane : lanes_) lane->go_on();
    Clock::time_point look_at = start;
    Clock::time_point moved_at = start;
    std::uint64_t seen = 0;
    loop_.restart();
    while (stats_.rounds < total) {
      look_at += 100ms;
      loop_.run_until(look_at);
      look_at = std::max(look_at, Clock::now() - 100ms);
      if (stats_.rounds != seen) moved_at = Clock::now();
      seen = stats_.rounds;
      if (Clock::now() - moved_at > patience()) {
        throw Failure(kExitUnavailable, "no reply has come for " + human(patience()));
      }
      on_progress(stats_.rounds);
    }
    stats_.elapsed = ended_at_ - start;
  }

  // Nobody waits longer than the timeout, so somebody must have been answered.
  Duration patience() const {
    constexpr std::uint64_t kMost = 1'000'000;
    return std::chrono::seconds(static_cast<std::int64_t>(std::min(plan_.timeout_s, kMost))) +
           settings_.connect.reply_timeout;
  }

  friend class Lane;

  const LoadPlan& plan_;
  const Settings& settings_;
  const std::vector<Server> servers_;
  std::optional<asio::ssl::context> tls_;
  asio::io_context loop_{1};
  std::vector<std::unique_ptr<LoadWorker>> workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  LoadFigures stats_;
  Clock::time_point ended_at_;  // of the last round
};

void Lane::go_on() {
  if (worker_.rounds_left == 0) return;
  --worker_.rounds_left;
  connection_ = worker_.connections[number_++ % worker_.connections.size()].get();
  asked_at_ = Clock::now();
  connection_->ask(dialogue_->acquire(), [this](std::string_view reply) { take_grant(reply); });
}

void Lane::take_grant(std::string_view reply) {
  if (!dialogue_->take_grant(reply)) refuse("acquire", reply);
  granted_at_ = Clock::now();
  load_.count_acquire(granted_at_ - asked_at_);
  connection_->ask(dialogue_->release(), [this](std::string_view answer) { take_release(answer); });
}

void Lane::take_release(std::string_view reply) {
  if (!dialogue_->take_release(reply)) refuse("release", reply);
  const Clock::time_point now = Clock::now();
  load_.count_round(now - granted_at_, now - asked_at_);
  load_.ended_at_ = now;
  go_on();
}

void Lane::refuse(const char* what, std::string_view reply) {
  const std::size_t body = reply.find("\r\n\r\n");
  const std::string_view told =
      trimmed(body == std::string_view::npos ? reply : reply.substr(body));
  throw Failure(told == "timeout" || told.find("wait_timeout") != std::string_view::npos
                    ? kExitConflict
                    : kExitTemporary,
                "the reply to " + std::string(what) + " is " + in_quotes(told));
}

// A connection is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

LoadFigures run_load(const LoadPlan& plan, const Settings& settings,
                     const OnProgress& on_progress) {
  raise_descriptor_limit();
  return Load(plan, settings).run(on_progress);
}

}  // namespace lockd::cli
