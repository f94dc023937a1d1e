// The named values that a request carries: the members of a JSON object, or of a query.
//
// Each is asked for by name; the first thing that is wrong is kept as the error, and names its
// member. What nobody has asked for by the end is unknown, and refused: a misspelt `ttl_ms` must
// not pass in silence.
//
//   RequestParams params = RequestParams::of_json(request.body);
//   const std::string_view key = params.name("key");
//   const auto ttl_ms = params.number("ttl_ms", 1, kMsMax);  // none: absent
//   if (const HttpError error = params.error()) return refuse(error);
//
// Values live as long as the RequestParams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/http/http_request.h"

namespace lockd {

class RequestParams {
 public:
  static constexpr std::size_t kCountMax = 16;

  // The body as one JSON object of texts, whole numbers (5, 5.0, 5e0) and truth values; no member
  // twice.
  static RequestParams of_json(std::string_view body);
  static RequestParams of_query(const std::vector<std::pair<std::string, std::string>>& query);

  // A key or a holder: must be there, and be a name (see base/text.h).
  std::string_view name(std::string_view member);
  // Any text that must be there.
  std::string_view text(std::string_view member);
  std::optional<std::string_view> text_if_given(std::string_view member);
  // A whole number from `min` to `max`.
  std::optional<std::int64_t> number_if_given(std::string_view member, std::int64_t min,
                                              std::int64_t max);
  std::int64_t number(std::string_view member, std::int64_t min, std::int64_t max);
  // Absent is false.
  bool truth(std::string_view member);

  // For rules of the caller's own.
  void refuse(std::string_view member, std::string_view problem);

  // Status 0 when all is well. To be asked last.
  HttpError error() const;

 private:
  friend class RequestParamsBuilder;

  enum class Kind : std::uint8_t { text, number, truth, other };
  struct Member {
    std::string name;
    Kind kind = Kind::other;
    std::string text{};
    std::int64_t number = 0;
    bool truth = false;
    bool asked = false;
  };

  Member* ask(std::string_view name);

  std::vector<Member> members_;
  bool from_query_ = false;
  std::string problem_;  // the first
};

}  // namespace lockd
