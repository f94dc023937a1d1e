// The settings that all servers of a cluster share: words "<name>=<value>" in the leader's record.
// The leader's are in force. A name that only one of two servers has belongs to a version that the
// other does not know, and is ignored. A text that cannot be parsed has no settings. Pure
// functions.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/types.h"

namespace lockd {

// The bounds of --etcd-detect, the time after which a silent leader is replaced.
inline constexpr Duration kDetectMin = std::chrono::milliseconds(300);
inline constexpr Duration kDetectMax = std::chrono::seconds(60);

using SharedSettings = std::map<std::string, std::string, std::less<>>;

// Nothing unless every word is a name of lower-case letters, digits and hyphens with a value.
std::optional<SharedSettings> shared_settings_in(std::string_view text);

struct SettingDifference {
  std::string name;
  std::string value;
  std::string other;
};
// Compares the names that both texts have.
std::vector<SettingDifference> differences(std::string_view text, std::string_view other);
// "max-locks is 1024, <here> 5000; ..."
std::string to_text(const std::vector<SettingDifference>& differences, std::string_view here);

// The word for `detect`.
std::string detect_setting(Duration detect);
// The detect of a leader with these settings. It must not be shorter than what the leader uses, so
// it is the maximum if the text does not have it or it cannot be parsed.
Duration detect_in(std::string_view text);

}  // namespace lockd
