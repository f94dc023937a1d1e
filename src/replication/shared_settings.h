// The settings that all servers of a cluster share, as the leader's record has them: words of
// "<name>=<value>". The leader's are in force; a server that has others follows all the same.
//
// Names that only one of two servers has are of a version that the other does not know, and are
// passed over. A text that is no such words says nothing. Pure functions.
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

// How long nothing may be seen of a leader: the bounds of --etcd-detect.
inline constexpr Duration kDetectMin = std::chrono::milliseconds(300);
inline constexpr Duration kDetectMax = std::chrono::seconds(60);

using SharedSettings = std::map<std::string, std::string, std::less<>>;

// Nothing unless every word is a name, of small letters, digits and hyphens, and a value, and no
// name is there twice.
std::optional<SharedSettings> shared_settings_in(std::string_view text);

struct SettingDifference {
  std::string name;
  std::string value;
  std::string other;
};
// Of the names that both have.
std::vector<SettingDifference> differences(std::string_view text, std::string_view other);
// "max-locks is 1024, <here> 5000; ..."
std::string to_text(const std::vector<SettingDifference>& differences, std::string_view here);

// The word for it.
std::string detect_setting(Duration detect);
// What a leader with these settings counts on. It may be no less: what the text does not say, or
// not so that it is understood, is the longest.
Duration detect_in(std::string_view text);

}  // namespace lockd
