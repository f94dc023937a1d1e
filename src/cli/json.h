// What servers say in JSON, read leniently: what is missing, or of another type, is nothing.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockd/types.h"

namespace lockd::cli {

// Throws Failure when it is not JSON; `who` said it.
boost::json::value parse_json(std::string_view text, std::string_view who);

// A member of an object; null when there is none.
const boost::json::value* member(const boost::json::value& object, std::string_view name);

std::string text_of(const boost::json::value& object, std::string_view name);
std::uint64_t number_of(const boost::json::value& object, std::string_view name);
bool has(const boost::json::value& object, std::string_view name);
bool truth_of(const boost::json::value& object, std::string_view name);
// Of a member that counts milliseconds.
Duration ms_of(const boost::json::value& object, std::string_view name);
// Of one that counts seconds, with a fraction.
Duration seconds_of(const boost::json::value& object, std::string_view name);
// Empty when it is none.
const boost::json::array& array_of(const boost::json::value& object, std::string_view name);

// Appends `"name":`, with a comma before it unless it is the first.
class ObjectWriter {
 public:
  ObjectWriter& text(std::string_view name, std::string_view value);
  ObjectWriter& number(std::string_view name, std::uint64_t value);
  ObjectWriter& decimal(std::string_view name, double value);
  ObjectWriter& truth(std::string_view name, bool value);
  // `json` is JSON already.
  ObjectWriter& raw(std::string_view name, std::string_view json);

  std::string str() const { return text_ + '}'; }

 private:
  void name(std::string_view name);

  std::string text_ = "{";
};

}  // namespace lockd::cli
