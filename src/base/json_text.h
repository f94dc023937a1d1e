// JSON, written by hand: what is said often, and without a tree in memory.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace lockd {

// Appends `text` in quotes. Precondition: it is UTF-8. Control characters are escaped, DEL too, so
// that the result is safe on a terminal as well.
void append_json_string(std::string& out, std::string_view text);
void append_json_number(std::string& out, std::int64_t number);
void append_json_number(std::string& out, std::uint64_t number);
void append_json_number(std::string& out, double number);

// An object that is being written.
//
//   JsonObject json;
//   json.add("key", key);
//   json.add("token", fence);
//   reply(json.finish());
class JsonObject {
 public:
  void add(std::string_view name, std::string_view text) { append_json_string(member(name), text); }
  void add(std::string_view name, const char* text) { add(name, std::string_view(text)); }
  void add(std::string_view name, bool truth) { member(name) += truth ? "true" : "false"; }
  template <std::integral Number>
  void add(std::string_view name, Number number) {
    if constexpr (std::signed_integral<Number>) {
      append_json_number(member(name), static_cast<std::int64_t>(number));
    } else {
      append_json_number(member(name), static_cast<std::uint64_t>(number));
    }
  }
  void add(std::string_view name, double number) { append_json_number(member(name), number); }
  // An empty text is one that is not known, and is left out.
  void add_if_known(std::string_view name, std::string_view text) {
    if (!text.empty()) add(name, text);
  }
  // `json` is a value already.
  void add_json(std::string_view name, std::string_view json) { member(name) += json; }

  std::string finish() {
    text_ += '}';
    return std::move(text_);
  }

 private:
  // Where the value of the next member goes.
  std::string& member(std::string_view name) {
    text_ += text_.size() == 1 ? "\"" : ",\"";
    text_ += name;
    text_ += "\":";
    return text_;
  }

  std::string text_ = "{";
};

// An array that is being written. What was appended to next() is its next value.
class JsonArray {
 public:
  std::string& next() {
    if (text_.size() > 1) text_ += ',';
    return text_;
  }
  void add_json(std::string_view json) { next() += json; }
  std::string finish() {
    text_ += ']';
    return std::move(text_);
  }

 private:
  std::string text_ = "[";
};

}  // namespace lockd
