// The body of a request. What is taken as members must be what Boost.JSON's own document says.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/http/request_params.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

void check_arrays(std::string_view text) {
  lockd::RequestParams params = lockd::RequestParams::of_json(text);
  const auto names = params.names("keys");
  const auto items = params.objects("items");
  std::vector<std::string_view> keys;
  for (lockd::RequestParams& item : items) keys.push_back(item.name("key"));
  if (params.error()) return;
  boost::system::error_code error;
  const boost::json::value document = boost::json::parse(text, error);
  check(!error && document.is_object());
  const boost::json::array& named = document.at("keys").as_array();
  const boost::json::array& objects = document.at("items").as_array();
  check(names.size() == named.size() && keys.size() == objects.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    check(std::string_view(named[i].as_string()) == names[i]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check(std::string_view(objects[i].at("key").as_string()) == keys[i]);
  }
}

void check_body(std::string_view text) {
  lockd::RequestParams params = lockd::RequestParams::of_json(text);
  const std::string_view key = params.name("key");
  const auto number = params.number_if_given("n", 0, INT64_MAX);
  const bool truth = params.truth("flag");
  if (params.error()) return;
  boost::system::error_code error;
  const boost::json::value document = boost::json::parse(text, error);
  check(!error && document.is_object());
  const boost::json::object& object = document.as_object();
  check(std::string_view(object.at("key").as_string()) == key);
  check(number.has_value() == object.contains("n"));
  // Of what has a point or an exponent Boost's document is not exact.
  if (number && !object.at("n").is_double()) {
    check(object.at("n").to_number<std::int64_t>() == *number);
  }
  check(truth == (object.contains("flag") && object.at("flag").as_bool()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_body(text);
  check_arrays(text);
  return 0;
}
