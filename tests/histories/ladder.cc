#include "histories/ladder.h"

#include <charconv>
#include <chrono>

namespace lockd::histories {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRungs = 7;  // the first holds, the last looks on
constexpr Instant kLease = 3 * kSecond;
constexpr Instant kWait = 30 * kSecond;
constexpr auto kPatience = 12s;

std::uint32_t waiters_in(std::string_view stats, std::string_view key) {
  std::size_t at = stats.find("\"key\":\"" + std::string(key) + "\"");
  if (at == std::string_view::npos) return 0;
  at = stats.find("\"waiters\":", at);
  std::uint32_t waiters = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(stats.data() + at + 10, stats.data() + stats.size(), waiters);
  return waiters;
}

}  // namespace

Ladder::Ladder(Recording& recording, ServerUnderTest& subject, std::vector<std::uint32_t> keys)
    : recording_(recording),
      scribe_(recording.add_scribe()),
      server_(subject),
      keys_(std::move(keys)),
      thread_([this] { run(); }) {}

Ladder::~Ladder() {
  stopping_ = true;
  thread_.join();
}

void Ladder::run() {
  for (std::size_t i = 0; !stopping_; ++i) {
    if (climb(keys_[i % keys_.size()])) ++climbed_;
    std::this_thread::sleep_for(20ms);
  }
}

bool Ladder::climb(std::uint32_t key) {
  node_ = server_.leader();
  const ServerUnderTest::Place place = server_.place(node_);
  if (place.line_port == 0) return false;
  life_ = place.life;
  std::vector<Rung> rungs;
  for (std::size_t i = 0; i < kRungs; ++i) rungs.push_back(rung(place));
  const bool climbed = climb(key, rungs);
  for (Rung& rung : rungs) leave(rung);
  return climbed;
}

bool Ladder::climb(std::uint32_t key, std::vector<Rung>& rungs) {
  Rung& onlooker = rungs.back();
  ask(rungs.front(), Function::acquire, key);
  if (!hear(rungs.front())) return false;
  for (std::size_t i = 1; i + 1 < rungs.size(); ++i) {
    ask(rungs[i], Function::acquire, key);
    if (!await_waiters(onlooker, key, static_cast<std::uint32_t>(i))) return false;
  }
  if (!release(rungs.front(), key)) return false;
  for (std::size_t i = 1; i + 1 < rungs.size(); ++i) {
    if (!hear(rungs[i]) || !release(rungs[i], key)) return false;
  }
  return true;
}

Ladder::Rung Ladder::rung(const ServerUnderTest::Place& place) {
  return {.client = LineClient(place.line_port, 0, server_.settings().tls),
          .conn = recording_.new_conn(),
          .proc = recording_.new_proc(),
          .alive_at = now()};
}

void Ladder::ask(Rung& rung, Function function, std::uint32_t key) {
  rung.operation = {.ttl = kLease,
                    .conn = rung.conn,
                    .proc = rung.proc,
                    .life = life_,
                    .key = key,
                    .server = server_.settings().number,
                    .node = static_cast<std::uint16_t>(node_),
                    .function = function,
                    .via = server_.settings().tls ? Via::tls : Via::tcp};
  std::string_view command = "stats";
  std::string argument = "_";
  if (function == Function::acquire) {
    rung.operation.timeout = kWait;
    command = "l";
    argument = "30 3";
  } else if (function == Function::release) {
    command = "r";
    argument = rung.token;
    rung.operation.fence = std::stoull(rung.token.substr(0, 16), nullptr, 16);
  }
  rung.operation.call = now();
  rung.client.send(request(command, recording_.key(key), argument));
}

// Whether what was asked for was done.
bool Ladder::hear(Rung& rung) {
  Operation& operation = rung.operation;
  const auto patience = std::chrono::nanoseconds(operation.timeout) + kPatience;
  const std::string reply =
      rung.client.read_line(std::chrono::duration_cast<std::chrono::milliseconds>(patience));
  if (reply.starts_with('<')) {
    rung.dead = true;
    return false;
  }
  operation.ret = now();
  operation.result = Result::refused;
  if (reply.starts_with("error_not_leader ")) operation.result = Result::not_leader;
  if (reply.starts_with("ok")) operation.result = Result::ok;
  if (reply == "timeout") operation.result = Result::timeout;
  if (reply == "error" && operation.function == Function::release) {
    operation.result = Result::not_held;
  }
  if (operation.function == Function::acquire && operation.result == Result::ok) {
    rung.token = token_of(reply);
    operation.fence = std::stoull(rung.token.substr(0, 16), nullptr, 16);
  }
  if (operation.function == Function::stats) {
    operation.waiters = waiters_in(reply, recording_.key(operation.key));
  }
  rung.alive_at = operation.call;
  scribe_.note(operation);
  operation.call = 0;
  return operation.result == Result::ok;
}

bool Ladder::await_waiters(Rung& onlooker, std::uint32_t key, std::uint32_t count) {
  for (const Instant deadline = now() + kLease; now() < deadline && !stopping_;) {
    ask(onlooker, Function::stats, key);
    if (!hear(onlooker)) return false;
    if (onlooker.operation.waiters == count) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

bool Ladder::release(Rung& rung, std::uint32_t key) {
  ask(rung, Function::release, key);
  hear(rung);
  return !rung.dead;
}

void Ladder::leave(Rung& rung) {
  const Instant closing = now();
  const bool died_with_server = rung.dead && server_.is_ending(life_, node_);
  rung.client.close();
  Operation& pending = rung.operation;
  if (pending.call != 0) {
    pending.result = Result::info;
    pending.gave_up = now();
    scribe_.note(pending);
  }
  Operation end{.call = rung.dead ? rung.alive_at : closing,
                .ret = now(),
                .conn = rung.conn,
                .proc = rung.proc,
                .life = life_,
                .server = server_.settings().number};
  end.function = died_with_server ? Function::lost : Function::disconnect;
  scribe_.note(end);
}

}  // namespace lockd::histories
