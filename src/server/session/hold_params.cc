#include "server/session/hold_params.h"

#include <chrono>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

Mode mode_in(RequestParams& params) {
  const std::string_view mode = params.text_if_given("mode").value_or("exclusive");
  if (mode != "exclusive" && mode != "shared") {
    params.refuse("mode", "must be exclusive or shared");
  }
  return mode == "shared" ? Mode::shared : Mode::exclusive;
}

// As it may be said again, of what is held; it changes nothing.
KeyItem held_item_in(RequestParams& params) {
  const KeyItem item(params.name("key"), kind_in(params));
  mode_in(params);
  const auto limit = params.number_if_given("limit", 1, kLimitMax);
  params.number_if_given("permits", 1, limit.value_or(kLimitMax));
  return item;
}

}  // namespace

Kind kind_in(RequestParams& params) {
  const std::string_view kind = params.text_if_given("kind").value_or("lock");
  if (kind != "lock" && kind != "semaphore") params.refuse("kind", "must be lock or semaphore");
  return kind == "semaphore" ? Kind::semaphore : Kind::lock;
}

KeyItem item_in(RequestParams& params, Kind kind) {
  const std::string_view key = params.name("key");
  if (kind == Kind::lock) return {key, kind, mode_in(params)};
  const std::int64_t limit = params.number("limit", 1, kLimitMax);
  const std::int64_t permits = params.number_if_given("permits", 1, limit).value_or(1);
  return {key, kind, Mode::exclusive, static_cast<std::uint32_t>(limit),
          static_cast<std::uint32_t>(permits)};
}

Terms terms_in(RequestParams& params) {
  const auto ms = [&](std::string_view member, std::int64_t min) {
    return params.number_if_given(member, min, kMsMax);
  };
  Terms terms{.holder = params.name("holder"),
              .ttl_ms = ms("ttl_ms", 1),
              .wait = std::chrono::milliseconds(ms("wait_ms", 0).value_or(0)),
              .note = params.text_if_given("note").value_or("")};
  if (terms.note.size() > kNoteSizeMax || !is_plain_text(terms.note)) {
    params.refuse("note", "must be at most 256 bytes of UTF-8 without control characters");
  }
  return terms;
}

HoldId hold_in(RequestParams& params, Kind kind) {
  const std::string_view key = params.name("key");
  const std::string_view holder = params.name("holder");
  const std::int64_t token = params.number("token", 1, kFenceMax);
  return {.keys = KeyItem(key, kind), .holder = holder, .fence = static_cast<Fence>(token)};
}

NamedKeys::NamedKeys(RequestParams& params) : by_items_(params.has("items")) {
  if (params.has("key")) params.refuse("key", "cannot be given together with several");
  if (by_items_ && params.has("keys")) params.refuse("keys", "cannot be given together with items");
}

NamedKeys NamedKeys::to_take(RequestParams& params) {
  NamedKeys named(params);
  std::vector<KeyItem> items;
  if (named.by_items_) {
    for (RequestParams& item : params.objects("items")) {
      items.push_back(item_in(item, kind_in(item)));
    }
  } else {
    const Mode mode = mode_in(params);
    for (const std::string_view key : params.names("keys"))
      items.emplace_back(key, Kind::lock, mode);
  }
  named.add(std::move(items));
  named.refuse_twins(params);
  return named;
}

NamedKeys NamedKeys::that_are_held(RequestParams& params) {
  NamedKeys named(params);
  std::vector<KeyItem> items;
  if (named.by_items_) {
    for (RequestParams& item : params.objects("items")) items.push_back(held_item_in(item));
  } else {
    for (const std::string_view key : params.names("keys")) items.emplace_back(key);
  }
  named.add(std::move(items));
  named.refuse_twins(params);
  return named;
}

void NamedKeys::add(std::vector<KeyItem> items) {
  texts_.reserve(items.size());
  for (const KeyItem& item : items) texts_.emplace_back(item.key);
  items_ = std::move(items);
  for (std::size_t i = 0; i < items_.size(); ++i) items_[i].key = texts_[i];
}

void NamedKeys::refuse_twins(RequestParams& params) const {
  const std::size_t twin = KeyItems(items_).find_duplicate();
  if (twin == items_.size()) return;
  params.refuse(member(), "must be different: \"" + texts_[twin] + "\" is there twice");
}

}  // namespace lockd
