// The server's own account of what happens, checked against the rules as it comes.
//
//   first-come       whoever is granted from a queue stands first in it; nobody passes a queue
//   bounded          no grant makes the permits in use more than the limit, no more wait than may
//   shares-or-alone  a lock has one hold, or all that it has share it
//   conserved        the first in a queue waits for what is taken, or asks for other keys too
//                    and waits for one of those; and for nothing else
//   all-or-none      a request for several keys is granted all of them in one step and under one
//                    fence, or leaves all queues in one step; one that nobody was told of is
//                    withdrawn whole
//   fences-rise      within a life of the server, fences of a key rise
//   settled-once     what ends had begun, and ends once
//   counted          how many hold and wait is as told
//   released         what a session holds goes with it
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "crash/holds.h"
#include "lockd/observer.h"
#include "simulation/promises.h"

namespace lockd::simulation {

class Witness final : public Observer {
 public:
  // So many may wait for a key; 0: any number.
  explicit Witness(std::uint32_t waiters_max = 0) : waiters_max_(waiters_max) { look(true); }

  // Throws crash::Violation for the first rule that was broken since the last call. Amid a turn of
  // the server a set may have ended in one queue, and in the others not yet.
  void check(bool is_in_turn = false);
  // Throws it unless each session that holds a key is there, as `is_there` says of the two.
  template <typename IsThere>
  void check_sessions(IsThere is_there) const {
    for (const auto& [name, state] : keys_) {
      for (const Held& held : state.holds) {
        if (held.session == 0) continue;
        if (!is_there(Key::of_name(name.kind, name.key), held.session)) {
          complain_of_session(name.key, held);
        }
      }
    }
  }
  // The server begins anew, with what it has recovered.
  void restart() {
    keys_.clear();
    touched_.clear();
    set_events_.clear();
  }
  void recovered(const crash::Holds& holds);
  // From now on what happens is the ruin of a server that is gone.
  void look_away(bool away) { away_ = away; }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t count(KeyEvent::Type type) const { return counts_[static_cast<std::size_t>(type)]; }
  std::uint64_t granted_shared() const { return granted_shared_; }
  std::uint64_t granted_several() const { return granted_several_; }
  std::uint64_t granted_sets() const { return granted_sets_; }
  std::uint64_t granted_sets_late() const { return granted_sets_late_; }

 private:
  struct Name {
    Kind kind;
    std::string key;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  struct Held {
    Fence fence;
    SessionId session;  // 0: it lives by its lease alone
    Mode mode;
    std::uint32_t permits;
    std::string set{};  // if it asked for several keys: its name
  };
  struct Waiting {
    std::uint32_t place;
    Mode mode;
    std::uint32_t permits;
    std::string set{};  // likewise
  };
  // That a set was granted one of its keys, or left its queue, or lost it as nobody was told.
  struct SetEvent {
    std::string set;
    KeyEvent::Type type;
    Fence fence;
    bool waited;
  };
  struct State {
    std::deque<Waiting> queue{};
    std::vector<Held> holds{};
    Fence last_fence = 0;
    std::uint32_t limit = 1;
  };

  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override;
  void note(const KeyEvent& event);
  static bool has_room(Kind kind, const State& state, Mode mode, std::uint32_t permits);
  void granted(State& state, const KeyEvent& event);
  void ended(State& state, const KeyEvent& event);
  void left_queue(State& state, const KeyEvent& event);
  bool waits_elsewhere(const std::string& set) const;
  bool has_place(const std::string& set) const;
  bool has_hold(const std::string& set, Fence fence) const;
  void check_sets();
  [[noreturn]] static void complain_of_session(const std::string& key, const Held& held);
  void broken(std::string_view rule, const KeyEvent& event, const std::string& how);

  const std::uint32_t waiters_max_;
  std::map<Name, State> keys_;
  std::vector<const std::map<Name, State>::value_type*> touched_;  // since the last check
  std::vector<SetEvent> set_events_;                               // likewise
  std::string broken_;
  bool away_ = false;
  std::uint64_t granted_shared_ = 0;   // grants of a lock that was shared already
  std::uint64_t granted_several_ = 0;  // and those of several permits
  std::uint64_t granted_sets_ = 0;
  std::uint64_t granted_sets_late_ = 0;  // those that had waited
  std::uint64_t hash_ = 0;
  std::uint64_t counts_[static_cast<std::size_t>(KeyEvent::Type::resized) + 1] = {};
};

}  // namespace lockd::simulation
