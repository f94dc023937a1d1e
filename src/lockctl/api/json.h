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

// To three digits behind the point, for what is measured.
double rounded(double value);

}  // namespace lockd::cli
