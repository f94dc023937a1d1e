#include "replication/shared_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

constexpr std::string_view kDetect = "etcd-detect";
constexpr std::size_t kPlaces = 9;  // decimal places of a second
constexpr std::uint64_t kSecondsMax = 1'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

bool is_setting_name(std::string_view text) {
  const auto is_of_names = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_of_names);
}

std::string with_zeros(std::string digits) {
  digits.resize(kPlaces, '0');
  return digits;
}

// Parses "2" or "0.5".
std::optional<Duration> seconds_in(std::string_view text) {
  const std::size_t point = text.find('.');
  const bool is_whole = point == std::string_view::npos;
  const std::string_view fraction = is_whole ? "0" : text.substr(point + 1);
  if (fraction.empty() || fraction.size() > kPlaces) return {};
  const auto seconds = parse_whole(text.substr(0, point), 0, kSecondsMax);
  const auto ns = parse_whole(with_zeros(std::string(fraction)), 0, kNsPerSecond - 1);
  if (!seconds || !ns) return {};
  return Duration(static_cast<Duration::rep>(*seconds * kNsPerSecond + *ns));
}

}  // namespace

std::optional<SharedSettings> shared_settings_in(std::string_view text) {
  SharedSettings settings;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t sign = word.find('=');
    if (sign == std::string_view::npos || !is_setting_name(word.substr(0, sign))) return {};
    const std::string_view value = word.substr(sign + 1);
    if (!is_plain_text(value) || !settings.emplace(word.substr(0, sign), value).second) return {};
  }
  return settings;
}

std::vector<SettingDifference> differences(std::string_view text, std::string_view other) {
  std::vector<SettingDifference> differences;
  const SharedSettings others = shared_settings_in(other).value_or(SharedSettings{});
  for (const auto& [name, value] : shared_settings_in(text).value_or(SharedSettings{})) {
    const auto found = others.find(name);
    if (found == others.end() || found->second == value) continue;
    differences.push_back({name, value, found->second});
  }
  return differences;
}

std::string to_text(const std::vector<SettingDifference>& differences, std::string_view here) {
  std::string text;
  for (const auto& [name, value, other] : differences) {
    if (!text.empty()) text += "; ";
    text += name + " is " + value + ", " + std::string(here) + " " + other;
  }
  return text;
}

std::string detect_setting(Duration detect) {
  const auto ns = static_cast<std::uint64_t>(detect.count());
  std::string text = std::string(kDetect) + "=" + std::to_string(ns / kNsPerSecond);
  const std::string fraction = std::to_string(kNsPerSecond + ns % kNsPerSecond);  // "1500000000"
  const std::size_t last = fraction.find_last_not_of('0');
  return last == 0 ? text : text + "." + fraction.substr(1, last);
}

Duration detect_in(std::string_view text) {
  const SharedSettings settings = shared_settings_in(text).value_or(SharedSettings{});
  const auto found = settings.find(kDetect);
  const auto detect = found == settings.end() ? std::nullopt : seconds_in(found->second);
  return detect.has_value() ? std::max(*detect, kDetectMin) : kDetectMax;
}

}  // namespace lockd
