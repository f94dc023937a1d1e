// lockctl top: asks a server again and again on one thread, and draws on another.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/http_cluster.h"
#include "lockctl/http/json.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/output/terminal.h"
#include "lockctl/output/top_view.h"
#include "lockctl/run/signals.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

// More than any screen has lines.
constexpr std::size_t kKeysMax = 500;
// How many keys are looked through for those that are chosen: not all of a crowd, every second.
constexpr std::size_t kLookedAtMax = 10'000;

// Takes snapshots of the server: over HTTP if there is an address, else over the line port.
class Observer {
 public:
  explicit Observer(const Settings& settings) : settings_(settings) {
    if (!settings.http.empty()) {
      http_ = std::make_unique<HttpCluster>(settings.http, settings.connect);
    }
  }

  std::string server() const {
    if (http_ != nullptr) return http_->address().to_string();
    std::string names;
    for (const client::Address& server : settings_.servers) {
      names += (names.empty() ? "" : ",") + server.to_string();
    }
    return names;
  }

  Snapshot take(const TopChoice& choice, std::stop_token stop) {
    Snapshot taken = http_ != nullptr ? over_http(choice) : over_line(std::move(stop));
    choose(taken.keys, choice);
    if (taken.keys.size() > kKeysMax) taken.keys.resize(kKeysMax);
    taken.at = std::chrono::steady_clock::now();
    return taken;
  }

  void interrupt() {
    if (http_ != nullptr) http_->interrupt();
  }

 private:
  Snapshot over_http(const TopChoice& choice) {
    const HttpReply overview = http_->get("/v1/overview");
    require(overview);
    Snapshot taken;
    taken.view = overview_view(parse_json(overview.body, server()));
    if (choice.is_hottest()) {
      add_page(taken.keys, "order=waiters&limit=" + std::to_string(kKeysMax));
      return taken;
    }
    std::string next;
    do {
      const std::string from = next.empty() ? "" : "&after=" + url_encoded(next);
      next = add_page(taken.keys, "limit=1000" + from);
    } while (!next.empty() && taken.keys.size() < kLookedAtMax);
    taken.is_partial = !next.empty();
    return taken;
  }

  // What the next page begins after; empty when that was the last.
  std::string add_page(std::vector<KeyView>& keys, const std::string& query) {
    const HttpReply locks = http_->get("/v1/locks?" + query);
    require(locks);
    const auto page = parse_json(locks.body, server());
    for (const auto& lock : array_of(page, "locks")) keys.push_back(key_view(lock));
    return text_of(page, "next");
  }

  Snapshot over_line(std::stop_token stop) {
    Snapshot taken;
    for (const client::Address& server : servers_to_ask(settings_, stop)) {
      const auto json = parse_json(fetch_stats(settings_, server, stop), server.to_string());
      add(taken.view, stats_view(json));
      for (KeyView& key : keys_of_stats(json)) {
        if (!key.idle_for) taken.keys.push_back(std::move(key));
      }
    }
    return taken;
  }

  static void add(ServerView& sum, const ServerView& one) {
    sum.connections += one.connections;
    sum.keys += one.keys;
    sum.keys_idle += one.keys_idle;
    sum.locks_held += one.locks_held;
    sum.lock_waiters += one.lock_waiters;
    sum.semaphore_holders += one.semaphore_holders;
    sum.semaphore_waiters += one.semaphore_waiters;
    sum.listeners += one.listeners;
  }

  const Settings& settings_;
  std::unique_ptr<HttpCluster> http_;
};

// Keeps the picture up to date, on a thread of its own.
class Sampler {
 public:
  Sampler(const Settings& settings, Duration interval, TopChoice choice)
      : observer_(settings),
        interval_(interval),
        choice_(std::move(choice)),
        thread_([this](std::stop_token stop) { run(stop); }) {}
  ~Sampler() {
    thread_.request_stop();
    observer_.interrupt();
  }

  // Readable when there is a newer picture.
  int descriptor() const { return news_.descriptor(); }
  TopPicture picture() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(news_.descriptor(), &count, sizeof count);
    const std::lock_guard guard(mutex_);
    return picture_;
  }
  // The next picture is of these, and comes at once.
  void show(const TopChoice& choice) {
    const std::lock_guard guard(mutex_);
    if (choice == choice_) return;
    choice_ = choice;
    is_new_choice_ = true;
    pause_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      sample(stop);
      std::unique_lock lock(mutex_);
      pause_.wait_for(lock, stop, interval_, [this] { return is_new_choice_; });
      is_new_choice_ = false;
    }
  }

  TopChoice choice() {
    const std::lock_guard guard(mutex_);
    return choice_;
  }

  void sample(const std::stop_token& stop) {
    std::optional<Snapshot> taken;
    std::string trouble;
    try {
      taken = observer_.take(choice(), stop);
    } catch (const Failure& failure) {
      trouble = failure.what();
    }
    const std::lock_guard guard(mutex_);
    picture_.server = observer_.server();
    picture_.trouble = std::move(trouble);
    if (taken) {
      picture_.before = std::exchange(picture_.now, std::move(taken));
    }
    news_.set();
  }

  Observer observer_;
  const Duration interval_;
  EventFd news_;
  std::mutex mutex_;
  std::condition_variable_any pause_;
  // Guarded by the mutex.
  TopPicture picture_;
  TopChoice choice_;
  bool is_new_choice_ = false;

  std::jthread thread_;  // last: it uses the others
};

// The exit status, if the signal is one to end by.
std::optional<int> take(const ReceivedSignal& signal, FullScreen& screen) {
  switch (signal.number) {
    case SIGCHLD:
    case SIGWINCH:
    case SIGCONT: return std::nullopt;
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      screen.leave();
      ::kill(::getpid(), SIGSTOP);
      screen.enter();
      return std::nullopt;
    case SIGINT: return kExitOk;
    default: return kExitSignal + signal.number;
  }
}

TopChoice choice_of(const Arguments& arguments) {
  const std::string_view order = arguments.text("sort").value_or("waiters");
  return {.order = order == "key"    ? TopOrder::key
                   : order == "held" ? TopOrder::held
                                     : TopOrder::waiters,
          .filter = std::string(arguments.text("filter").value_or(""))};
}

// False when one of them ends it.
bool take_keys(const FullScreen& screen, TopControls& controls) {
  while (const char key = screen.key()) {
    if (controls.press(key) == TopControls::Answer::quit) return false;
  }
  return true;
}

}  // namespace

int execute_top(const Invocation& invocation) {
  constexpr Duration kShortest = 100ms;
  const Duration interval =
      std::clamp<Duration>(invocation.arguments.seconds("interval").value_or(1s), kShortest, 1h);
  const SignalSource signals;
  FullScreen screen;
  TopControls controls(choice_of(invocation.arguments));
  Sampler sampler(invocation.settings, interval, controls.choice());
  TopPicture picture;
  for (;;) {
    picture.footer = controls.text();
    // What was chosen a moment ago applies to what is there, until there is a newer picture.
    if (picture.now) choose(picture.now->keys, controls.choice());
    screen.show(draw(picture, screen.size(), invocation.output.style()));
    pollfd watched[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                        {.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = sampler.descriptor(), .events = POLLIN, .revents = 0}};
    ::poll(watched, std::size(watched), -1);
    while (const auto signal = signals.next()) {
      if (const auto status = take(*signal, screen)) return *status;
    }
    if ((watched[0].revents & (POLLHUP | POLLERR)) != 0) return kExitSignal + SIGHUP;
    if (!take_keys(screen, controls)) return kExitOk;
    sampler.show(controls.choice());
    picture = sampler.picture();
  }
}

}  // namespace lockd::cli
