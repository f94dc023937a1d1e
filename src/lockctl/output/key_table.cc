#include "lockctl/output/key_table.h"

#include <utility>
#include <vector>

#include "lockctl/output/text.h"

namespace lockd::cli {
namespace {

std::string holders_text(const KeyView& key) {
  if (key.kind == Kind::lock) return std::to_string(key.holders);
  return std::to_string(key.holders) + '/' + (key.limit == 0 ? "-" : std::to_string(key.limit));
}

std::vector<std::string> row_of(const KeyView& key) {
  const HoldView none;
  const HoldView& hold = key.holds.empty() ? none : key.holds.front();
  std::string holder = text_or_dash(hold.holder);
  if (key.holders > 1 && !key.holds.empty()) holder += " +" + std::to_string(key.holders - 1);
  if (key.idle_for) holder = "idle for " + human(*key.idle_for);
  return {key.key, kind_text(key.kind),    holders_text(key),       std::to_string(key.waiters),
          holder,  fence_text(hold.fence), if_known(hold.held_for), if_known(hold.expires_in)};
}

}  // namespace

KeyTable::KeyTable()
    : table_({"KEY", "KIND", "HOLDERS>", "WAITERS>", "HOLDER", "FENCE>", "HELD>", "EXPIRES>"}) {}

void KeyTable::add(const KeyView& key) { table_.add(row_of(key)); }

std::string if_known(const std::optional<Duration>& time) { return time ? human(*time) : "-"; }

std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string fence_text(Fence fence) { return fence == 0 ? "-" : std::to_string(fence); }

std::string kind_text(Kind kind) { return kind == Kind::lock ? "lock" : "semaphore"; }

}  // namespace lockd::cli
