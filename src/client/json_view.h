// JSON that a server has said, looked at where it lies: nothing is copied but what is asked for.
//
//   const auto said = JsonView::parse(text);  // nothing when it is no JSON
//   if (!said) return garbled(text);
//   const auto fence = said->member("token").number();
//
// Lenient as all reading of answers is: what is missing, or of another type, is nothing. Pure, and
// refers to the text that it was made of; for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockd::client {

class JsonView {
 public:
  // Deeper than anything a server of ours says.
  static constexpr int kDepthMax = 16;

  JsonView() = default;  // nothing: it has no members, no elements and no value

  // One value, and blanks around it at most.
  static std::optional<JsonView> parse(std::string_view text);

  bool is_object() const { return text_.starts_with('{'); }
  // Of an object; the first of that name. Names are compared as they are written.
  JsonView member(std::string_view name) const;
  // Of an array.
  std::vector<JsonView> elements() const;
  // A whole number that is not negative.
  std::optional<std::uint64_t> number() const;
  // A text, without its quotes. Characters that were escaped by their number come out as `?`.
  std::optional<std::string> text() const;

 private:
  explicit JsonView(std::string_view text) : text_(text) {}

  std::string_view text_;  // of one value, well-formed
};

}  // namespace lockd::client
