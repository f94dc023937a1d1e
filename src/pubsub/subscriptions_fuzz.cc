// Lines of text: a channel, then patterns. The trie must find exactly the patterns that matches()
// says go with the channel, and leave nothing behind.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"
#include "pubsub/subscriptions.h"
#include "pubsub/testing/subscriptions_model.h"

namespace {

using lockd::SubscriberId;

void check(bool condition) {
  if (!condition) __builtin_trap();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The tokens of any text, joined again, are the text.
void check_tokens(std::string_view text) {
  std::string joined;
  lockd::Tokens tokens(text);
  for (std::string_view token; tokens.next(&token);) {
    check(token.find('.') == std::string_view::npos);
    joined.append(token).append(tokens.at_end() ? "" : ".");
  }
  check(joined == text);
}

void check_match(lockd::Subscriptions& subscriptions, std::string_view channel,
                 const std::vector<SubscriberId>& expected) {
  std::vector<SubscriberId> found;
  subscriptions.match(channel, found);
  std::sort(found.begin(), found.end());
  check(found == expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = lines_of({reinterpret_cast<const char*>(data), size});
  for (const std::string_view line : lines) {
    check_tokens(line);
    check(!lockd::is_channel(line) || lockd::is_pattern(line));
  }
  if (lines.empty() || !lockd::is_channel(lines[0])) return 0;
  const std::string_view channel = lines[0];
  check(lockd::matches(channel, channel) && lockd::matches(">", channel));

  // Every second one in a group of its own: with one member it is served like the rest.
  lockd::Subscriptions subscriptions;
  std::vector<SubscriberId> expected;
  for (SubscriberId id = 1; id < lines.size(); ++id) {
    if (!lockd::is_pattern(lines[id])) continue;
    subscriptions.add(id, lines[id], id % 2 == 0 ? "" : "group " + std::to_string(id));
    if (lockd::matches(lines[id], channel)) expected.push_back(id);
  }
  check_match(subscriptions, channel, expected);
  for (SubscriberId id = 1; id < lines.size(); ++id) {
    subscriptions.remove_all(id);
    if (id == lines.size() / 2) {
      std::erase_if(expected, [id](SubscriberId e) { return e <= id; });
      check_match(subscriptions, channel, expected);
    }
  }
  check(subscriptions.nodes() == 0);
  return 0;
}
