// The named values that a request carries: the members of a JSON object, or of a query.
//
// The caller reads each member by name. error() is the first problem, and names its member. A
// member that the caller has not read by then is unknown, and an error: a misspelt `ttl_ms` must
// not pass in silence.
//
//   RequestParams params = RequestParams::of_json(request.body);
//   const std::string_view key = params.name("key");
//   const auto ttl_ms = params.number("ttl_ms", 1, kMsMax);  // none: absent
//   if (const HttpError error = params.error()) return refuse(error);
//
// A member may also be an array of texts, or of objects, whose members are read by name, too.
//
// Values live as long as the RequestParams, also when that is moved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/http/http_request.h"

namespace lockd {

class RequestParams {
 public:
  static constexpr std::size_t kCountMax = 16;
  // How many elements of an array are kept. The others are only counted.
  static constexpr std::size_t kElementsMax = 64;

  // The body as one JSON object of texts, whole numbers (5, 5.0, 5e0), truth values and arrays; no
  // member twice.
  static RequestParams of_json(std::string_view body);
  static RequestParams of_query(const std::vector<std::pair<std::string, std::string>>& query);

  // Whether there is such a member, whatever it is.
  bool has(std::string_view member) const;
  // A key or a holder: must be there, and be a name (see base/text.h).
  std::string_view name(std::string_view member);
  // A key or a holder that may be absent; then empty.
  std::string_view name_if_given(std::string_view member);
  // Any text that must be there.
  std::string_view text(std::string_view member);
  std::optional<std::string_view> text_if_given(std::string_view member);
  // A whole number from `min` to `max`.
  std::optional<std::int64_t> number_if_given(std::string_view member, std::int64_t min,
                                              std::int64_t max);
  std::int64_t number(std::string_view member, std::int64_t min, std::int64_t max);
  // Absent is false.
  bool truth(std::string_view member);
  // An array that must be there, of 1 to kElementsMax names.
  std::vector<std::string_view> names(std::string_view member);
  // An array that must be there, of 1 to kElementsMax objects. An error in one is an error of all.
  std::span<RequestParams> objects(std::string_view member);

  // For rules of the caller's own.
  void refuse(std::string_view member, std::string_view problem);

  // Status 0: no error. The last call.
  HttpError error() const;

 private:
  friend class RequestParamsBuilder;

  enum class Kind : std::uint8_t { text, number, truth, texts, objects, other };
  struct Member {
    std::string name;
    Kind kind = Kind::other;
    std::string text{};
    std::int64_t number = 0;
    bool truth = false;
    bool asked = false;
    std::vector<std::string> texts{};
    std::vector<RequestParams> objects{};
    std::size_t elements = 0;  // of its array, those included that are not kept
  };

  Member* ask(std::string_view name);
  // An array of that kind, and not too long; else null.
  Member* ask_array(std::string_view name, Kind kind, std::string_view what);

  std::vector<Member> members_;
  bool from_query_ = false;
  std::string path_;     // of an object in an array: "items[3]."
  std::string problem_;  // the first
};

}  // namespace lockd
