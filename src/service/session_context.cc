#include "service/session_context.h"

#include <utility>

namespace lockd {

PendingWait PendingWait::of(const WaitId& id, const KeyItems& keys, std::string_view holder) {
  PendingWait wait{.id = id,
                   .kind = keys.front().kind,
                   .key = std::string(keys.front().key),
                   .holder = std::string(holder)};
  if (keys.size() == 1) return wait;
  auto several = std::make_shared<Several>();
  for (const KeyItem& item : keys) several->keys.emplace_back(item.key);
  several->items.assign(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) several->items[i].key = several->keys[i];
  wait.several = std::move(several);
  return wait;
}

KeyItems PendingWait::keys() const {
  return several == nullptr ? KeyItems(KeyItem(key, kind)) : KeyItems(several->items);
}

HoldId PendingWait::hold_of(const Grant& grant) const {
  const Holder by_secret(nullptr, grant.secret);
  return {
      .keys = keys(), .holder = holder.empty() ? by_secret : Holder(holder), .fence = grant.fence};
}

}  // namespace lockd
