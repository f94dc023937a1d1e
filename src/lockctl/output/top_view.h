// What `top` shows: a frame out of two snapshots of a server, in the order and of the keys that the
// person at the terminal has chosen. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/output/output.h"
#include "lockctl/output/terminal.h"
#include "lockctl/output/view.h"

namespace lockd::cli {

// Which keys are shown, and in what order.
struct TopChoice {
  KeyOrder order = KeyOrder::waiters;
  std::string filter{};  // what the key has in it, anywhere; empty: any key

  // Whether the keys with the longest queues are all that is asked for.
  bool is_hottest() const { return order == KeyOrder::waiters && filter.empty(); }

  friend bool operator==(const TopChoice&, const TopChoice&) = default;
};

// Leaves those that are chosen, in their order.
void choose(std::vector<KeyView>& keys, const TopChoice& choice);

// What keys do that are pressed.
class TopControls {
 public:
  enum class Answer : std::uint8_t { nothing, redraw, quit };

  explicit TopControls(TopChoice choice = {}) : choice_(std::move(choice)) {}

  Answer press(char key);
  const TopChoice& choice() const { return choice_; }
  // The last line: what can be pressed, or the filter while it is typed.
  std::string text() const;

 private:
  Answer type(char key);
  Answer sort(KeyOrder order);

  TopChoice choice_;
  bool typing_ = false;
};

struct Snapshot {
  std::chrono::steady_clock::time_point at{};
  ServerView view{};
  std::vector<KeyView> keys{};
  bool is_partial = false;  // the server has more keys than were looked at
};

struct TopPicture {
  std::string server{};              // whom we ask
  std::optional<Snapshot> now{};     // none yet
  std::optional<Snapshot> before{};  // for rates
  std::string trouble{};             // why there is nothing newer, or empty
  std::string footer{};              // TopControls::text()
};

// Lines joined by \n, as many as the size has rows and, marks aside, no wider than its columns.
std::string draw(const TopPicture& picture, ScreenSize size, const Style& style);

}  // namespace lockd::cli
