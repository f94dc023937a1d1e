// What a server tells of itself and its keys, whichever way it was asked (HTTP knows more than the
// line port), and the table that people are shown. Plain values, for one thread.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockctl/output/output.h"
#include "lockd/types.h"

namespace lockd::cli {

// Who a client says it is, and where it came from; what is not known is empty.
struct IdentityView {
  std::string client{};
  std::string peer{};
  std::string note{};
};

IdentityView identity_of(const boost::json::value& json);
// "client 'ann@build-7:4711', peer 10.0.0.7:51234, note 'deploy'"
std::string identity_text(const IdentityView& identity);

struct HoldView {
  std::string holder{};  // empty: not known
  IdentityView identity{};
  Fence fence = 0;  // 0: not known
  Mode mode = Mode::exclusive;
  std::uint64_t permits = 1;
  std::optional<Duration> held_for{};
  std::optional<Duration> expires_in{};
};

struct WaiterView {
  std::string holder{};
  IdentityView identity{};
  Duration waited{};
  Mode mode = Mode::exclusive;
  std::uint64_t permits = 1;
  std::uint64_t keys = 1;  // for how many it waits, to be granted all of them at once
};

struct KeyView {
  Kind kind = Kind::lock;
  std::string key{};
  std::uint64_t limit = 1;
  std::uint64_t holders = 0;
  std::uint64_t permits = 0;  // in use, of a semaphore
  std::uint64_t waiters = 0;
  std::optional<Duration> idle_for{};  // nobody holds it
  std::vector<HoldView> holds{};       // may be fewer than `holders`
  std::vector<WaiterView> queue{};     // may be fewer than `waiters`
};

// Everything that has happened since the server began.
struct TotalsView {
  std::uint64_t grants = 0;
  std::uint64_t contended = 0;
  std::uint64_t renewals = 0;
  std::uint64_t releases = 0;
  std::uint64_t expiries = 0;
  std::uint64_t disconnects = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t cancels = 0;
};

struct ServerView {
  std::string version{};  // empty: not known
  std::optional<Duration> uptime{};
  std::optional<bool> ready{};
  bool draining = false;
  std::uint64_t connections = 0;
  std::uint64_t keys = 0;
  std::uint64_t keys_idle = 0;
  std::uint64_t keys_max = 0;  // 0: not known
  std::uint64_t locks_held = 0;
  std::uint64_t lock_waiters = 0;
  std::uint64_t semaphore_holders = 0;
  std::uint64_t semaphore_waiters = 0;
  std::uint64_t listeners = 0;
  std::optional<TotalsView> totals{};
};

// One of the "locks" of /v1/locks.
KeyView key_view(const boost::json::value& json);

// /v1/overview
ServerView overview_view(const boost::json::value& json);

// The statistics of the line port: the stats, and the keys, idle ones last.
ServerView stats_view(const boost::json::value& json);
std::vector<KeyView> keys_of_stats(const boost::json::value& json);

// Of servers that share the keys. Of what cannot be added, the more worrying is kept.
void add(ServerView& sum, const ServerView& one);

// What comes first: the names, the longest queues, the longest wait, the longest hold.
enum class KeyOrder : std::uint8_t { key, waiters, wait, held };

// "key", "waiters", "wait" or "held", as the table of commands has them.
KeyOrder key_order_of(std::string_view word);
// Whether `a` comes before `b`. What is not known comes last; by name where all else is equal.
bool comes_before(const KeyView& a, const KeyView& b, KeyOrder order);

std::optional<Duration> longest_hold(const KeyView& key);

// "held by 'ana' for 3s, 1 waiting"
std::string holders_text(const KeyView& key);

// A key as a JSON object, as /v1/locks would have it, as far as it is known.
std::string json_of(const KeyView& key);

// Keys as people are shown them: a row of a table each.
class KeyTable {
 public:
  KeyTable();

  // With the first of its holders.
  void add(const KeyView& key);
  bool empty() const { return table_.empty(); }
  std::string text(const Style& style) const { return table_.text(style); }

 private:
  Table table_;
};

std::string kind_text(Kind kind);
// "shared" or "4 permits"; nothing where it is held alone, or by one permit.
std::string share_text(Mode mode, std::uint64_t permits);
// How many hold a lock; how many permits of a semaphore are in use, of how many: "5/8".
std::string count_text(const KeyView& key);
// How an object of the API, or an event, says that it is held, or is to be.
Mode mode_of(const boost::json::value& json);
std::uint64_t permits_of(const boost::json::value& json);
// What is not known is "-".
std::string fence_text(Fence fence);
std::string if_known(const std::optional<Duration>& time);
std::string text_or_dash(const std::string& text);

}  // namespace lockd::cli
