// What a request says about one of its keys: the input of the rules.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd {

struct KeyRequest {
  std::string_view key;
  Holder holder;
  Duration ttl;
  Duration wait{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  std::string_view note{};
  std::string_view peer{};
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};

// One hold. A view: it must not outlive its holder.
struct KeyHold {
  std::string_view key;
  const Holder& holder;
  Fence fence;
  Kind kind = Kind::lock;
};

inline KeyRequest request_for(const KeyItem& item, const AcquireRequest& request) {
  return {.key = item.key,
          .holder = request.holder,
          .ttl = request.ttl,
          .wait = request.wait,
          .kind = item.kind,
          .limit = item.limit,
          .note = request.note,
          .peer = request.peer,
          .mode = item.mode,
          .permits = item.permits};
}

inline KeyHold hold_for(const KeyItem& item, const HoldId& hold) {
  return {item.key, hold.holder, hold.fence, item.kind};
}

}  // namespace lockd
