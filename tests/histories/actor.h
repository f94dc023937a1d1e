// A client on a connection: carries out its plan, one request after the other, and writes down what
// it was told.
//
// Connects again when its connection is gone, and goes on with what it held. Of a cluster it goes
// to the node that leads, or stays with one, whether that leads or not. Belongs to the thread of
// its pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "histories/channel.h"
#include "histories/chaos_proxy.h"
#include "histories/dialect.h"
#include "histories/plan.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace lockd::histories {

class Actor {
 public:
  struct Role {
    ServerUnderTest* subject;
    bool http = false;
    std::vector<std::uint16_t> proxy_ports{};  // one for each node; none: straight to the server
    Instant patience = kPatience;              // how late an answer may be
    bool stays = false;                        // with one node of a cluster
  };
  // Longer than kLateMax: a reply that does not come by then never will.
  static constexpr Instant kPatience = 12 * kSecond;

  Actor(Recording& recording, Recording::Scribe& scribe, const ChaosProxy& proxy, Role role,
        Plan plan);

  // What to do when a connection begins: to have its socket watched.
  using Watch = std::function<void(int socket, Actor& actor, bool writing, bool is_new)>;

  // `ending`: the peer may have sent its last.
  void ready(const Watch& watch, bool ending);
  // Every few milliseconds.
  void tick(Instant at, const Watch& watch);

  const Role& role() const { return role_; }
  void finish() { plan_.finish(); }
  // Renews what it holds, and gives nothing back until then.
  void keep(Instant until) { plan_.keep(until); }
  bool finished() const { return finished_; }
  // The client stands still until then; or dies, and another takes its place.
  void pause(Instant until) { paused_until_ = until; }
  void die();

 private:
  struct Pending {
    Request request;
    Operation operation;
    Instant patience_until;
  };

  void connect(const Watch& watch);
  void converse(bool ending);
  void ask_next();
  void take(const Reply& reply);
  bool is_direct() const { return role_.proxy_ports.empty(); }
  void note_unknown();
  void close(bool by_us);
  void note_end(bool died_with_server, bool by_us, Instant closing);
  Via via() const;

  Recording& recording_;
  Recording::Scribe& scribe_;
  const ChaosProxy& proxy_;
  const Role role_;
  const Dialect& dialect_;
  Plan plan_;
  std::uint32_t proc_;
  bool finished_ = false;
  Instant paused_until_ = 0;
  Instant connect_at_ = 0;
  std::size_t node_;  // to which it connects, or is connected

  // Of the connection.
  std::unique_ptr<Channel> channel_;
  std::string received_;
  std::uint64_t conn_ = 0;
  std::uint32_t life_ = 0;  // 0: behind the proxy, and nothing has come yet
  Instant alive_at_ = 0;    // the server had not closed it when this was called
  bool server_ends_ = false;
  bool sent_away_ = false;  // another node leads
  std::optional<Pending> pending_;
};

}  // namespace lockd::histories
