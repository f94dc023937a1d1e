// What is held, told a second time: a map from events, to compare with what an engine recovers.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "lockd/journal.h"

namespace lockd::crash {

struct HoldKey {
  Kind kind;
  std::string key;
  Fence fence;

  friend auto operator<=>(const HoldKey&, const HoldKey&) = default;
};

struct Held {
  std::string owner;  // owner_of() its holder
  ClientIdentity client;
  std::uint32_t limit;
  std::uint32_t first_limit;  // 0 unless it was resized
  Mode mode;
  std::uint32_t permits;
  Duration ttl;
  Time expires_at;

  friend bool operator==(const Held&, const Held&) = default;
};

// "name cart-7", "secret 4711"
std::string owner_of(const Holder& holder);
// ", client '', peer '10.0.0.9:1', note 'deploy'", or nothing for one that says nothing.
std::string show(const ClientIdentity& client);
// A view of `owner`.
Holder holder_of(const std::string& owner);
std::string show(const HoldKey& key);

class Holds {
 public:
  // As the journal's promise says: an event of a hold that is not there changes nothing.
  void apply(const Event& event);

  const std::map<HoldKey, Held>& all() const { return all_; }
  const Held* find(const HoldKey& key) const;
  Fence largest_fence() const { return largest_fence_; }  // of any event

  // What is held is the same; empty if so, else the first difference.
  std::string differs_from(const Holds& expected) const;

 private:
  void resize(const Event& event);

  std::map<HoldKey, Held> all_;
  Fence largest_fence_ = 0;
};

}  // namespace lockd::crash
