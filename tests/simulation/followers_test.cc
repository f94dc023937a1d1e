// Worlds of one leader and its followers, each from a seed: real hosts, sessions and both ends of
// the links, on one thread and a clock of their own. Links stall, break at one end before the
// other, and come back; followers die; clients come by any server, repeat what was lost, and leave
// in every state. Nobody may hold what another holds, no hold may end within its lease but by its
// holder's doing, and no request may be executed twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/link_session.h"
#include "cluster/proxy_session.h"
#include "engine/testing/forgetful_journal.h"
#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"
#include "simulation/wire.h"

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration kForwardTimeout = 2s;
constexpr int kFollowers = 2;
constexpr int kActors = 10;
constexpr int kKeys = 3;
constexpr std::string_view kWord = "0123456789abcdef";

Options options_of_cluster() {
  Options options;
  options.cluster_secret = kWord;
  options.read_timeout = std::chrono::hours(24 * 365 * 100);
  return options;
}

Channel::Time steady(Time time) { return Channel::Time(std::chrono::nanoseconds(time.ns)); }

// One end of a connection, at a host.
class End final : public MemoryTransport {
 public:
  explicit End(SessionHost& host) : host_(host) {}

  void receive(std::string_view bytes) {
    unread_ += bytes;
    resume_input();
  }
  void half_close() {
    input_ended_ = true;
    host_.on_input_end(hosted());
  }
  void reset() {
    is_closed_ = true;
    host_.on_broken(hosted());
  }
  std::string take() { return std::exchange(sent_, {}); }
  bool is_closed() const { return is_closed_; }
  bool is_over() const { return hosted().is_over; }
  HostedSession& record() const { return hosted(); }

  void resume_input() override {
    for (std::size_t taken = 1; taken > 0 && !unread_.empty() && !is_over();) {
      taken = host_.receive(hosted(), unread_);
      unread_.erase(0, taken);
    }
  }
  bool has_unread() const override { return !unread_.empty(); }
  bool peer_has_left() const override { return input_ended_; }
  void on_turn_end() override {
    hosted().activity->unsent_bytes.store(0, std::memory_order_relaxed);
  }
  void close() override { is_closed_ = true; }
  bool is_idle() const override { return is_closed_ && is_forgotten_; }
  // The world does not use it any more.
  void forget() { is_forgotten_ = true; }

 private:
  void sent(std::string_view bytes) override { sent_ += bytes; }

  SessionHost& host_;
  std::string unread_;
  std::string sent_;
  bool input_ended_ = false;
  bool is_closed_ = false;
  bool is_forgotten_ = false;
};

class WorldGate : public LeaderGate {
 public:
  bool reaches_leader() const override { return false; }
  std::string leader_address() const override { return "-"; }
  std::string leader_http_address() const override { return "-"; }
  void confirm(Batch&) override {}
  std::unique_ptr<ServerSession> proxy(SessionContext&, ServerSession&, ProxyRequest) override {
    return nullptr;
  }
  std::unique_ptr<ServerSession> accept_link(SessionContext&, ServerSession&) override {
    return nullptr;
  }
  void tick() override {}
  void end_turn() override {}
};

class Leader final : public WorldGate {
 public:
  bool follows() const override { return false; }
  std::unique_ptr<ServerSession> accept_link(SessionContext& context,
                                             ServerSession& client) override {
    return std::make_unique<LinkSession>(context, client, links, on_loop);
  }

  std::atomic<SessionId> last{1000};
  ClusterLinks links{last};
  LinkSession::OnLoop on_loop;
  SessionHarness harness{options_of_cluster(), nullptr, *this};
};

// With its connection to the leader, while there is one.
class Follower final : public WorldGate, private FollowerLink::Wire {
 public:
  Follower()
      : harness_([this]() -> ForgetfulJournal* {
          journal_.set_state(Journal::State::following);
          return &journal_;
        }()) {}

  bool follows() const override { return true; }
  std::unique_ptr<ServerSession> proxy(SessionContext& context, ServerSession& client,
                                       ProxyRequest request) override {
    const Time missed = client.found_no_leader();
    const bool has_waited = missed != Time{} && now() < missed + kForwardTimeout;
    if (!link.is_up() && has_waited) return nullptr;
    return std::make_unique<ProxySession>(context, client, std::move(request), link,
                                          steady(connected[client.id()]),
                                          steady(now() + kForwardTimeout));
  }

  Time now() { return host.clock().now(); }
  void begin() { link.begin(*this); }
  std::size_t unsent() const override { return unsent_bytes; }
  std::string& output() override { return out; }

  FollowerLink link;
  std::map<SessionId, Time> connected;
  std::string out;
  std::string in;
  std::size_t unsent_bytes = 0;

  // The connection.
  End* at_leader = nullptr;
  Line to_leader;
  Line to_follower;
  Time stalled_until{};
  Time leader_breaks_at{};
  Time dials_at{};
  SessionId last = 0;

 private:
  ForgetfulJournal journal_;
  ForgetfulJournal* harness_;

 public:
  SessionHarness host{options_of_cluster(), harness_, *this};
};

struct Actor {
  std::size_t node = 0;  // 0: the leader
  End* end = nullptr;
  std::string in{};
  char asks = 0;  // 'l', 'n', 'r', 's'; 0: nothing
  Time asked{};
  int key = 0;
  std::string secret{};  // of what may be granted unseen, or is
  std::string token{};
  Time certain_until{};  // by its own reckoning
  bool believes = false;
  bool may_be_gone = false;  // a release was sent whose answer was lost
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    leader_.harness.clock().advance(start_);
    for (auto& follower : followers_) follower->host.clock().advance(start_);
    listener_ = connect_to(leader_.harness, ++leader_.last);
    listener_->receive("listen\ns\n\n");
  }
  ~World() {
    for (auto& follower : followers_) follower->link.end(true);
  }

  void run() {
    for (int i = 0; i < 4000 && problem_.empty(); ++i) step(/*is_healed=*/false);
    for (Actor& actor : actors_) {
      if (actor.end != nullptr) leave(actor, below(3));
    }
    for (int i = 0; i < 3000 && problem_.empty(); ++i) step(/*is_healed=*/true);
    check_all_is_over();
  }
  const std::string& problem() const { return problem_; }
  int grants() const { return grants_; }
  int losses() const { return losses_; }
  int stale() const { return stale_; }

 private:
  unsigned below(unsigned bound) {
    return std::uniform_int_distribution<unsigned>(0, bound - 1)(random_);
  }
  bool percent(unsigned chance) { return below(100) < chance; }
  Time now() { return leader_.harness.clock().now(); }
  void violated(const std::string& what) {
    if (problem_.empty()) problem_ = what + " at step " + std::to_string(steps_);
  }

  static End* connect_to(SessionHarness& harness, SessionId id) {
    auto end = std::make_unique<End>(harness.host());
    End* const raw = end.get();
    harness.host().open(std::make_unique<LineSession>(harness.host().context(), id, Peer{}),
                        std::move(end));
    return raw;
  }

  void step(bool is_healed) {
    ++steps_;
    const Duration by = std::chrono::milliseconds(1 + below(15));
    leader_.harness.clock().advance(by);
    leader_.links.ids.reserve(link_clock_ms(steady(now())));
    for (auto& follower : followers_) follower->host.clock().advance(by);
    if (!is_healed && percent(2)) strike();
    for (auto& follower : followers_) carry(*follower, is_healed);
    if (steps_ % 100 == 0) {
      for (LinkSession* link : LinkSession::OnLoop(leader_.on_loop)) link->tick(steady(now()));
    }
    for (Actor& actor : actors_) hear(actor);
    if (!is_healed) {
      Actor& actor = actors_[below(kActors)];
      act(actor);
    }
    leader_.harness.engine().sweep();
    leader_.harness.host().end_turn();
    for (auto& follower : followers_) {
      follower->link.tick(steady(now()));
      follower->host.host().end_turn();
    }
    count_signals();
  }

  // The links.

  void strike() {
    Follower& follower = *followers_[below(kFollowers)];
    if (follower.at_leader == nullptr) return;
    switch (below(4)) {
      case 0: follower.stalled_until = now() + std::chrono::milliseconds(below(6000)); return;
      case 1: return break_link(follower, 0ms);
      case 2: return break_link(follower, std::chrono::milliseconds(below(4000)));
      default: return kill(follower);
    }
  }

  // The follower sees it at once, the leader after a while.
  void break_link(Follower& follower, Duration later) {
    ++losses_;
    follower.leader_breaks_at = now() + later;
    follower.dials_at = follower.leader_breaks_at + std::chrono::milliseconds(below(3000));
    follower.to_leader.drop();
    follower.to_follower.drop();
    follower.out.clear();
    follower.in.clear();
    follower.stalled_until = {};
    follower.link.end();
  }

  // Its clients are cut off; the leader hears of it later.
  void kill(Follower& follower) {
    break_link(follower, std::chrono::milliseconds(below(4000)));
    for (Actor& actor : actors_) {
      if (actor.end == nullptr || &harness_of(actor) != &follower.host) continue;
      actor.end->reset();
      lose(actor);
    }
  }

  void carry(Follower& follower, bool is_healed) {
    if (follower.at_leader == nullptr) {
      if (now() >= follower.dials_at) dial(follower);
      return;
    }
    if (follower.leader_breaks_at != Time{}) {
      if (now() < follower.leader_breaks_at) return;
      follower.at_leader->reset();
      follower.at_leader->forget();
      follower.at_leader = nullptr;
      follower.leader_breaks_at = {};
      return;
    }
    send(follower.to_leader, std::exchange(follower.out, {}));
    send(follower.to_follower, follower.at_leader->take());
    if (now() < follower.stalled_until && !is_healed) return;
    while (follower.to_leader.is_due(now())) {
      follower.at_leader->receive(follower.to_leader.take().bytes);
    }
    while (follower.to_follower.is_due(now())) follower.in += follower.to_follower.take().bytes;
    const auto taken = follower.link.receive(follower.in, steady(now()));
    if (!taken) return violated("the leader sent no frame");
    follower.in.erase(0, *taken);
    if (follower.at_leader->is_closed()) violated("the leader closed a link");
  }

  void send(Line& line, const std::string& bytes) {
    if (!bytes.empty())
      line.send(now() + std::chrono::milliseconds(below(40)), Segment::What::bytes, bytes);
  }

  // With the whole handshake.
  void dial(Follower& follower) {
    SessionHost& host = leader_.harness.host();
    End* const end = connect_to(leader_.harness, ++leader_.last);
    const std::string name = "n" + std::to_string(&follower == followers_[0].get()) + "/0";
    const std::string nonce(64, '0');
    end->receive("peer\n" + name + "\n" + nonce + "\n");
    host.end_turn();
    const std::string challenge = end->take().substr(3, 64);
    const std::string proof =
        prove(HashedSecret(kWord),
              {.node = name, .asker_nonce = nonce, .answerer_nonce = challenge}, LinkEnd::asker);
    end->receive("peer\n" + name + "\n" + proof + "\n");
    host.end_turn();
    if (!end->take().starts_with("ok ")) {  // its last link ends first
      if (!end->is_closed()) end->reset();
      end->forget();
      follower.dials_at = now() + 100ms;
      return;
    }
    follower.at_leader = end;
    for (LinkSession* link : leader_.on_loop) link->tick(steady(now()));
    follower.begin();
  }

  // The clients.

  SessionHarness& harness_of(const Actor& actor) {
    return actor.node == 0 ? leader_.harness : followers_[actor.node - 1]->host;
  }

  void act(Actor& actor) {
    if (actor.end == nullptr) return come(actor);
    if (actor.asks != 0) {
      if (percent(15)) leave(actor, below(3));  // in the middle of it
      return;
    }
    if (percent(8)) return leave(actor, below(3));
    if (percent(10)) return ask(actor, 's', "signal\ns\n" + std::to_string(++signals_) + "\n");
    if (actor.token.empty()) return acquire(actor);
    if (percent(50)) return ask(actor, 'n', "n\n" + key_of(actor) + "\n" + actor.token + "\n");
    actor.believes = false;
    actor.secret.clear();  // a release that is under way may end whatever has it
    ask(actor, 'r', "r\n" + key_of(actor) + "\n" + actor.token + "\n");
  }

  static std::string key_of(const Actor& actor) { return "k" + std::to_string(actor.key); }

  void come(Actor& actor) {
    actor.node = below(kFollowers + 1);
    if (actor.node == 0) {
      actor.end = connect_to(leader_.harness, ++leader_.last);
    } else {
      Follower& follower = *followers_[actor.node - 1];
      actor.end = connect_to(follower.host, ++follower.last);
      follower.connected[follower.last] = now();
    }
    actor.in.clear();
    if (!percent(30)) return;
    actor.end->receive("client\nactor\n\nping\n\n\n");
    prelude_[&actor] = 2;
  }

  // Repeats an acquisition whose reply was lost, or begins another one.
  void acquire(Actor& actor) {
    if (actor.secret.empty() || percent(20)) {
      actor.secret = std::to_string(1'000'000'000'000'000 + ++secrets_);
      actor.key = static_cast<int>(below(kKeys));
    }
    const unsigned wait = below(4);
    ask(actor, 'l',
        "l\n" + key_of(actor) + "\n" + std::to_string(wait) + " 3 as=" + actor.secret + "\n");
  }

  void ask(Actor& actor, char what, const std::string& request) {
    actor.asks = what;
    actor.asked = now();
    const std::size_t cut =
        percent(30) ? below(static_cast<unsigned>(request.size())) : request.size();
    actor.end->receive(std::string_view(request).substr(0, cut));
    if (!actor.end->is_over()) actor.end->receive(std::string_view(request).substr(cut));
  }

  // Disconnects by its own choice: what it holds is released.
  void leave(Actor& actor, unsigned how) {
    SessionHost& host = harness_of(actor).host();
    if (actor.asks == 'l') ++stale_;
    if (!actor.end->is_over()) {
      if (how == 0) actor.end->half_close();
      if (how == 1) actor.end->reset();
      if (how == 2) host.finish(actor.end->record(), CloseReason::peer);
    }
    actor.believes = false;
    actor.token.clear();
    part(actor);
    if (percent(30)) actor.secret.clear();
  }

  // Its server has closed the connection: what it holds is held.
  void lose(Actor& actor) {
    if (actor.asks == 'r') actor.may_be_gone = true;
    part(actor);
  }

  void part(Actor& actor) {
    actor.asks = 0;
    prelude_.erase(&actor);
    std::exchange(actor.end, nullptr)->forget();
  }

  void hear(Actor& actor) {
    if (actor.end == nullptr) return;
    actor.in += actor.end->take();
    for (std::size_t end = 0;
         actor.end != nullptr && (end = actor.in.find('\n')) != std::string::npos;) {
      const std::string line = actor.in.substr(0, end);
      actor.in.erase(0, end + 1);
      if (const auto found = prelude_.find(&actor); found != prelude_.end()) {
        if (line != "ok") violated("a prelude is answered " + line);
        if (--found->second == 0) prelude_.erase(found);
        continue;
      }
      if (line.starts_with("lost ")) continue;
      answer(actor, line);
    }
    if (actor.end != nullptr && actor.end->is_closed()) lose(actor);
  }

  void answer(Actor& actor, const std::string& line) {
    const char asked = std::exchange(actor.asks, '\0');
    if (asked == 0) return violated("an answer to nothing: " + line);
    if (line == "error_not_leader -") {
      if (actor.node == 0) violated("the leader does not lead");
      return;
    }
    const bool is_certain =
        !actor.token.empty() && now() < actor.certain_until && !actor.may_be_gone;
    switch (asked) {
      case 'l': return answer_acquire(actor, line);
      case 'n':
        if (line.starts_with("ok ")) {
          actor.certain_until = actor.asked + 3s;
          expect_alone(actor);
        } else {
          if (is_certain) violated("a renewal is refused within the lease");
          actor.token.clear();
          actor.secret.clear();
          actor.believes = false;
        }
        return;
      case 'r':
        if (line != "ok" && is_certain) violated("a release is refused within the lease");
        actor.token.clear();
        actor.secret.clear();
        actor.may_be_gone = false;
        return;
      default:
        if (!line.starts_with("ok ")) violated("a signal is answered " + line);
    }
  }

  void answer_acquire(Actor& actor, const std::string& line) {
    if (line == "timeout") return actor.secret.clear();
    if (line == "error") return;  // another connection of its own has the place
    if (!line.starts_with("ok ")) return violated("an acquire is answered " + line);
    ++grants_;
    actor.token = line.substr(3, 32);
    actor.certain_until = actor.asked + 3s;
    actor.may_be_gone = false;
    expect_alone(actor);
  }

  void expect_alone(Actor& actor) {
    actor.believes = true;
    for (const Actor& other : actors_) {
      const bool holds = &other != &actor && other.believes && other.key == actor.key &&
                         now() < other.certain_until;
      if (holds && now() < actor.certain_until) violated("two hold " + key_of(actor));
    }
  }

  void count_signals() {
    heard_ += listener_->take();
    for (std::size_t end = 0; (end = heard_.find('\n')) != std::string::npos;) {
      const std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      if (line.starts_with("sig ") && ++delivered_[line] > 1) violated("twice: " + line);
    }
  }

  // All leases are over, and every client is gone.
  void check_all_is_over() {
    const Stats stats = leader_.harness.engine().stats();
    if (stats.lock_waiters != 0) violated("a client still waits");
    if (stats.locks_held != 0) violated("something is still held");
    if (leader_.links.channels != 0) violated("channels are left open");
    for (const ClientStatus& one : leader_.harness.clients().list_some(0, 1000)) {
      if (!one.forwarded_as.empty()) violated(one.forwarded_as + " is still there");
    }
    if (delivered_.size() > signals_) violated("more signals than were sent");
  }

  const Duration start_ = std::chrono::hours(24 * 365 * 30);
  std::mt19937_64 random_;
  Leader leader_;
  std::vector<std::unique_ptr<Follower>> followers_ = [] {
    std::vector<std::unique_ptr<Follower>> made;
    for (int i = 0; i < kFollowers; ++i) made.push_back(std::make_unique<Follower>());
    return made;
  }();
  std::vector<Actor> actors_{kActors};
  std::map<const Actor*, int> prelude_;  // replies that are still to come to its first requests
  End* listener_ = nullptr;
  std::string heard_;
  std::map<std::string, int> delivered_;
  std::size_t signals_ = 0;
  std::uint64_t secrets_ = 0;
  int steps_ = 0;
  int grants_ = 0;
  int losses_ = 0;
  int stale_ = 0;
  std::string problem_;
};

TEST(Followers, KeepEveryPromiseInManyWorlds) {
  int grants = 0;
  int losses = 0;
  int stale = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    World world(seed);
    world.run();
    ASSERT_EQ(world.problem(), "") << "seed " << seed;
    grants += world.grants();
    losses += world.losses();
    stale += world.stale();
  }
  std::printf("%d grants, %d links lost, %d left while they asked\n", grants, losses, stale);
  EXPECT_GT(grants, 1000);
  EXPECT_GT(losses, 1000);
  EXPECT_GT(stale, 500);
}

}  // namespace
}  // namespace lockd::simulation
