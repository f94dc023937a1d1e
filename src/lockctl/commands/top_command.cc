// lockctl top: asks a server again and again on one thread, and draws on another.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockctl/api/json.h"
#include "lockctl/api/line_api.h"
#include "lockctl/commands/commands.h"
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

// Takes snapshots of the servers: by their statistics, which know less, where they lack the API.
class Observer {
 public:
  explicit Observer(const Invocation& invocation)
      : settings_(invocation.settings), apis_(apis_of(invocation)) {}

  std::string server() const {
    std::string names;
    for (const auto& api : apis_) names += (names.empty() ? "" : ",") + api->server();
    return names;
  }

  Snapshot take(const TopChoice& choice, const std::stop_token& stop) {
    Snapshot taken = look(choice, stop);
    choose(taken.keys, choice);
    if (taken.keys.size() > kKeysMax) taken.keys.resize(kKeysMax);
    taken.at = std::chrono::steady_clock::now();
    return taken;
  }

  void interrupt() {
    for (const auto& api : apis_) api->interrupt();
  }

 private:
  Snapshot look(const TopChoice& choice, const std::stop_token& stop) {
    std::vector<Snapshot> all;
    try {
      for (const auto& api : apis_) all.push_back(look_at(*api, choice));
    } catch (const NoApi&) {
      all = by_statistics(stop);
    }
    for (auto one = all.begin() + 1; one != all.end(); ++one) add(all.front(), std::move(*one));
    return std::move(all.front());
  }

  static Snapshot look_at(Api& api, const TopChoice& choice) {
    const ApiReply overview = api.get("/v1/overview");
    require(overview);
    Snapshot taken{.view = overview_view(parse_json(overview.body, api.server()))};
    const bool is_hottest = choice.is_hottest();
    const std::size_t keys_max = is_hottest ? kKeysMax : kLookedAtMax;
    for_each_listed(
        api, "/v1/locks", is_hottest ? Parameters{{"order", "waiters"}} : Parameters{}, "locks",
        [&] { return keys_max - std::min(keys_max, taken.keys.size()); },
        [&](const auto& lock) { taken.keys.push_back(key_view(lock)); });
    taken.is_partial = !is_hottest && taken.keys.size() >= keys_max;
    return taken;
  }

  std::vector<Snapshot> by_statistics(const std::stop_token& stop) const {
    std::vector<Snapshot> all;
    for (const client::Address& server : servers_to_ask(settings_, stop)) {
      const auto json = parse_json(fetch_stats(settings_, server, stop), server.to_string());
      Snapshot& taken = all.emplace_back(Snapshot{.view = stats_view(json)});
      for (KeyView& key : keys_of_stats(json)) {
        if (!key.idle_for) taken.keys.push_back(std::move(key));
      }
    }
    return all;
  }

  static void add(Snapshot& sum, Snapshot one) {
    cli::add(sum.view, one.view);
    std::move(one.keys.begin(), one.keys.end(), std::back_inserter(sum.keys));
    sum.is_partial = sum.is_partial || one.is_partial;
  }

  const Settings& settings_;
  const std::vector<std::unique_ptr<Api>> apis_;
};

// Keeps the picture up to date, on a thread of its own.
class Sampler {
 public:
  Sampler(const Invocation& invocation, Duration interval, TopChoice choice)
      : observer_(invocation),
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
  return {.order = key_order_of(arguments.text("sort").value_or("waiters")),
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
  Sampler sampler(invocation, interval, controls.choice());
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
