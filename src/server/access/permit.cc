#include "server/access/permit.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace lockd {

bool Permit::may_touch(std::string_view name) const {
  if (prefixes.empty()) return true;
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](const std::string& prefix) { return name.starts_with(prefix); });
}

bool Permit::may_listen(std::string_view pattern) const {
  return may_touch(pattern.substr(0, pattern.find_first_of("*>")));
}

bool Permit::hears_all_of(const Permit& other) const {
  for (const Right right : {Right::signal, Right::read}) {
    if (other.may(right) && !may(right)) return false;
  }
  if (!is_confined()) return true;
  return other.is_confined() &&
         std::all_of(other.prefixes.begin(), other.prefixes.end(),
                     [this](const std::string& prefix) { return may_touch(prefix); });
}

std::string Permit::lacks(Right needed) const {
  if (needed == Right::admin && proof == Proof::none && may(Right::lock)) {
    return "this needs the right `admin`, which without auth tokens only clients on this machine "
           "have";
  }
  const std::string right =
      needed == Right::read_or_lock ? "`read` or `lock`" : "`" + std::string(word_of(needed)) + "`";
  const std::string who =
      name.empty() ? "who shows neither an auth token nor a listed certificate" : "'" + name + "'";
  return "this needs the right " + right + ", which " + who + " lacks";
}

std::string Permit::is_confined_to() const {
  constexpr std::size_t kShownMax = 8;
  std::string text = "'" + name + "' has its rights for what begins with ";
  for (std::size_t i = 0; i < std::min(prefixes.size(), kShownMax); ++i) {
    text += (i == 0 ? "'" : " or '") + prefixes[i] + "'";
  }
  if (prefixes.size() <= kShownMax) return text;
  return text + " and " + std::to_string(prefixes.size() - kShownMax) + " more";
}

std::string_view word_of(Right right) {
  switch (right) {
    case Right::lock: return "lock";
    case Right::signal: return "signal";
    case Right::read: return "read";
    case Right::admin: return "admin";
    case Right::none:
    case Right::read_or_lock: break;
  }
  return "";
}

std::optional<Right> right_of(std::string_view word) {
  for (const Right right : kRights) {
    if (word == word_of(right)) return right;
  }
  return std::nullopt;
}

std::string expiry_text(Permit::Expiry expiry) {
  const auto day = std::chrono::floor<std::chrono::days>(expiry);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(expiry - day);
  std::array<char, 64> text{};
  int size =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  std::string all(text.data(), static_cast<std::size_t>(size));
  if (expiry == day) return all;
  size = std::snprintf(
      text.data(), text.size(), "T%02d:%02d:%02dZ", static_cast<int>(time.hours().count()),
      static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return all + std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace lockd
