// How keys are shown to people: a row of a table each.
#pragma once

#include <optional>
#include <string>

#include "lockctl/output/output.h"
#include "lockctl/output/view.h"
#include "lockd/types.h"

namespace lockd::cli {

class KeyTable {
 public:
  KeyTable();

  // With the first of its holders.
  void add(const KeyView& key);
  bool empty() const { return table_.empty(); }
  std::string text(const Style& style) const { return table_.text(style); }

 private:
  Table table_;
};

std::string kind_text(Kind kind);
// What is not known is "-".
std::string fence_text(Fence fence);
std::string if_known(const std::optional<Duration>& time);
std::string text_or_dash(const std::string& text);

}  // namespace lockd::cli
