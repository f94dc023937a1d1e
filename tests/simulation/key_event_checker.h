// Checks the server's own account of what happens against the rules as it comes: those of
// core/testing/event_model.h, and
//
//   bounded      no more wait than may
//   conserved    the first in a queue waits for what is taken, or asks for other keys too
//                and waits for one of those; and for nothing else
//   all-or-none  a request for several keys is granted all of them in one step and under one
//                fence, or leaves all queues in one step; one that nobody was told of is
//                withdrawn whole
//   released     what a session holds goes with it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/testing/event_model.h"
#include "crash/holds.h"
#include "lockd/observer.h"
#include "simulation/promises.h"

namespace lockd::simulation {

class KeyEventChecker final : public Observer {
 public:
  // So many may wait for a key; 0: any number.
  explicit KeyEventChecker(std::uint32_t waiters_max = 0) : waiters_max_(waiters_max) {
    observe(true);
  }

  // Throws crash::Violation for the first rule that was broken since the last call. Amid a turn of
  // the server a set may have ended in one queue, and in the others not yet.
  void check(bool is_in_turn = false);
  // Throws it unless each session that holds a key is there, as `is_there` says of the two.
  template <typename IsThere>
  void check_sessions(IsThere is_there) const {
    for (const auto& [name, key] : model_.keys()) {
      for (const auto& [fence, hold] : key.holds) {
        const SessionId session = session_of(hold.holder);
        if (session == 0 || is_there(Key::of_name(name.first, name.second), session)) continue;
        complain_of_session(name.second, fence, session);
      }
    }
  }
  // The server begins anew, with what it has recovered.
  void restart() {
    model_.clear();
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
  // That a set was granted one of its keys, or left its queue, or lost it as nobody was told.
  struct SetEvent {
    std::string set;
    KeyEvent::Type type;
    Fence fence;
    bool waited;
  };
  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override;
  void note(const KeyEvent& event);
  static SessionId session_of(std::string_view holder);
  bool waits_elsewhere(const std::string& set) const;
  bool has_place(const std::string& set) const;
  bool has_hold(const std::string& set, Fence fence) const;
  void check_sets();
  [[noreturn]] static void complain_of_session(const std::string& key, Fence fence,
                                               SessionId session);

  const std::uint32_t waiters_max_;
  EventModel model_;
  std::vector<const EventModel::Keys::value_type*> touched_;  // since the last check
  std::vector<SetEvent> set_events_;                          // since the last check
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
