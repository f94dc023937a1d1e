// What `top` shows: a frame out of two snapshots of a server. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockctl/output/output.h"
#include "lockctl/output/terminal.h"
#include "lockctl/output/view.h"

namespace lockd::cli {

struct Snapshot {
  std::chrono::steady_clock::time_point at{};
  ServerView view{};
  std::vector<KeyView> keys{};  // those with the longest queues first
};

struct TopPicture {
  std::string server{};              // whom we ask
  std::optional<Snapshot> now{};     // none yet
  std::optional<Snapshot> before{};  // for rates
  std::string trouble{};             // why there is nothing newer, or empty
};

// Lines joined by \n, as many as the size has rows and, marks aside, no wider than its columns.
std::string draw(const TopPicture& picture, ScreenSize size, const Style& style);

}  // namespace lockd::cli
