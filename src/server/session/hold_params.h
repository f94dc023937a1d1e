// What the calls about holds say in their parameters: which keys, how much of them, for whom.
//
// Each takes what it asks for from the parameters, which keep what is wrong with it. What is
// returned refers to their texts, but for NamedKeys, which has its own. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/requests.h"
#include "protocol/http/request_params.h"

namespace lockd {

// The longest time that may be said: see kDurationMax.
inline constexpr std::int64_t kMsMax = 9'223'372'036'000;

// A lock, unless it says otherwise.
Kind kind_in(RequestParams& params);

// The key of an acquisition, and how much of it.
KeyItem item_in(RequestParams& params, Kind kind);

// What an acquisition says besides.
struct Terms {
  std::string_view holder{};
  std::optional<std::int64_t> ttl_ms{};
  Duration wait{};
  std::string_view note{};
};
Terms terms_in(RequestParams& params);

// The hold that a renewal or a release names.
HoldId hold_in(RequestParams& params, Kind kind);

// The keys of a call about several at once, as `keys`, which are locks, or as `items`.
class NamedKeys {
 public:
  // Whether the call is about several keys.
  static bool are_in(const RequestParams& params) {
    return params.has("keys") || params.has("items");
  }
  // Precondition: it is. Those of an acquisition; and of a renewal or a release, where it does not
  // matter how much of each.
  static NamedKeys to_take(RequestParams& params);
  static NamedKeys that_are_held(RequestParams& params);

  NamedKeys(NamedKeys&&) = default;
  NamedKeys& operator=(NamedKeys&&) = default;

  const std::vector<KeyItem>& items() const { return items_; }
  // As a reply names them: as the request did.
  std::string_view member() const { return by_items_ ? "items" : "keys"; }
  bool by_items() const { return by_items_; }

 private:
  explicit NamedKeys(RequestParams& params);
  void add(std::vector<KeyItem> items);
  void refuse_twins(RequestParams& params) const;

  bool by_items_;
  std::vector<std::string> texts_;
  std::vector<KeyItem> items_;  // refer to the texts
};

}  // namespace lockd
