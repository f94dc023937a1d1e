// Sessions in a real SessionHost, over memory in place of sockets, on one thread, with a clock that
// moves only while a session waits. For fuzz targets and tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/clock.h"
#include "lockd/engine.h"
#include "pubsub/signal_hub.h"
#include "server/session/session_host.h"
#include "server/session/testing/memory_transport.h"
#include "server/session/testing/pieced_report.h"

namespace lockd {

class SessionHarness {
 public:
  // `journal` may be null: nothing is kept.
  explicit SessionHarness(Options options, Journal* journal = nullptr,
                          LeaderGate& gate = standalone_gate())
      : options_(std::move(options)), journal_(journal), gate_(gate) {}
  ~SessionHarness() { engine_.close(); }  // while there is a host to hear of it

  SessionHost& host() { return host_; }

  // One session, and what it has said.
  template <typename Kind>
  HostedSession& open(SessionId id = 1, Peer peer = {}) {
    return open(std::make_unique<Kind>(host_.context(), id, std::move(peer)));
  }
  HostedSession& open(std::unique_ptr<ServerSession> session) {
    return host_.open(std::move(session), std::make_unique<Memory>());
  }
  static const std::string& said_by(const HostedSession& hosted) { return memory(hosted).heard; }
  // Its peer closes, or half-closes.
  void leave(HostedSession& hosted) {
    static_cast<Memory&>(*hosted.transport).peer_left = true;
    host_.on_input_end(hosted);
  }
  // Whether its peer takes what is sent: if not, a report stops there.
  static void set_room(HostedSession& hosted, bool room) {
    static_cast<Memory&>(*hosted.transport).room = room;
  }
  // Whether it takes what it is sent unasked: if not, it is closed.
  static void set_room_for_signals(HostedSession& hosted, bool room) {
    static_cast<Memory&>(*hosted.transport).room_for_signals = room;
  }
  // What every report says. It is made when it is asked for, or left to the test.
  std::vector<std::string> report{"{", "", "}"};
  bool makes_reports = true;
  ReportQueue& reports() { return reports_; }
  const WorkerStats& stats() const { return stats_; }
  Engine& engine() { return engine_; }
  ManualClock& clock() { return clock_; }
  Access& access() { return access_; }
  ClientRegistry& clients() { return clients_; }
  // Something happens to a key, as the engine would say.
  void happens(const KeyEvent& event, Position position = 0) {
    static_cast<Observer&>(feed_).on_key_events({&event, 1}, position);
  }

  // Everything that a new session says when `input` comes in pieces of `piece` bytes.
  template <typename Kind>
  std::string play(std::string_view input, std::size_t piece) {
    HostedSession& hosted = open<Kind>();
    std::string unread;
    while (!input.empty() && can_go_on(hosted)) {
      unread += input.substr(0, piece);
      input.remove_prefix(std::min(piece, input.size()));
      for (std::size_t taken = 1; taken > 0 && can_go_on(hosted);) {
        taken = host_.receive(hosted, unread);
        unread.erase(0, taken);
        host_.end_turn();
        end_pause(hosted);
        end_wait(hosted);
      }
    }
    const std::string said = said_by(hosted);
    host_.cut(hosted);
    host_.end_turn();
    return said;
  }

 private:
  struct Memory final : MemoryTransport {
    std::string heard;
    bool peer_left = false;
    bool room = true;
    bool room_for_signals = true;

    void sent(std::string_view bytes) override { heard += bytes; }
    bool peer_has_left() const override { return peer_left; }
    bool has_room_for(Push what) override {
      return what == Push::signal ? room_for_signals : room || what == Push::event;
    }
    void close() override {}
    bool is_idle() const override { return false; }  // a test may still ask what it said
  };

  static const Memory& memory(const HostedSession& hosted) {
    return static_cast<const Memory&>(*hosted.transport);
  }

  static bool can_go_on(const HostedSession& hosted) {
    return !hosted.is_over && hosted.session->is_open() && !hosted.session->is_blocked();
  }

  // It was kept waiting for long enough.
  void end_pause(HostedSession& hosted) {
    if (hosted.session->pause() != ServerSession::Pause::none) host_.on_event(hosted, PauseOver{});
    host_.end_turn();
  }

  // Whatever it waits for comes; what would take too long is given up. A stream stays.
  void end_wait(HostedSession& hosted) {
    if (!hosted.session->is_blocked()) return;
    clock_.advance(std::chrono::seconds(2));
    engine_.sweep();
    host_.end_turn();
    if (!hosted.session->is_blocked()) return;
    host_.drain();
    host_.context().draining = false;  // it goes on
    host_.end_turn();
  }

  const Options options_;
  Journal* const journal_;
  LeaderGate& gate_;
  std::atomic<SessionId> last_session_{1000};  // beyond those that tests give
  ManualClock clock_;
  ClientRegistry clients_;
  EventFeed feed_{0, &clients_};
  Engine engine_{{.shards = 1,
                  .keys_max = 4,
                  .clock = &clock_,
                  .journal = journal_,
                  .observer = &feed_,
                  .sweeper = false,
                  .hash_seed = 1}};
  SignalHub hub_;
  TokenSource secrets_;
  Access access_{options_};
  WorkerStats stats_;
  ReportQueue reports_{
      [this](const ReportRequest& request) { return PiecedReport::answer(request, report); },
      [this](ReportQueue::Lane lane) {
        while (makes_reports && reports_.make_some(lane)) continue;
      }};
  SessionHost host_{{.options = options_,
                     .engine = engine_,
                     .hub = hub_,
                     .feed = feed_,
                     .secrets = secrets_,
                     .access = access_,
                     .clients = clients_,
                     .stats = stats_,
                     .unix_ms = [] { return std::int64_t{1'700'000'000'000}; },
                     .reports = reports_,
                     .wake = [] {},
                     .last_session = &last_session_,
                     .gate = gate_}};
};

}  // namespace lockd
