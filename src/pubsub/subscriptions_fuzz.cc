// Lines of text: a channel, then patterns. The trie must find exactly the patterns that matches()
// says go with the channel, and leave nothing behind. Then again in pieces, whose sizes the text
// chooses, while subscriptions come and go.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/pattern.h"
#include "pubsub/subscriptions.h"
#include "pubsub/testing/match_witness.h"
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
  std::vector<SubscriberId> found = lockd::match_all(subscriptions, channel);
  std::sort(found.begin(), found.end());
  check(found == expected);
}

// Each change is to the subscription of a number: it comes or, if it is there, goes.
void check_match_in_pieces(const std::vector<std::string_view>& lines) {
  constexpr SubscriberId kSubscribers = 4;
  lockd::Subscriptions subscriptions;
  lockd::SubscriptionsModel model;
  const auto change = [&](std::size_t number) {
    const std::string pattern(lines[number % lines.size()]);
    if (!lockd::is_pattern(pattern)) return;
    const SubscriberId id = number % kSubscribers;
    const std::string group = number % 3 == 0 ? "" : "group " + std::to_string(number % 3);
    const bool added = subscriptions.add(id, pattern, group);
    check(added == model.add(id, pattern, group));
    if (!added) check(subscriptions.remove(id, pattern, group) && model.remove(id, pattern, group));
  };
  for (std::size_t i = 0; i < 3 * lines.size(); ++i) change(i);
  lockd::MatchWitness witness(model, lines[0]);
  subscriptions.begin_match(lines[0]);
  for (std::size_t i = 0; subscriptions.is_matching(); ++i) {
    const std::string_view line = lines[i % lines.size()];
    const std::size_t number = line.empty() ? i : static_cast<unsigned char>(line[i % line.size()]);
    std::vector<SubscriberId> some;
    subscriptions.match_some(1 + number % 3, some);
    check(witness.found(some).empty());
    change(number);
    witness.changed();
  }
  check(witness.over().empty());
  for (SubscriberId id = 0; id < kSubscribers; ++id) subscriptions.remove_all(id);
  check(subscriptions.nodes() == 0 && subscriptions.size() == 0);
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
  check_match_in_pieces(lines);
  return 0;
}
