// What a bench has measured, for programs to read: besides what it prints for people, each figure
// is one line of JSON, added to the file that LOCKD_BENCH_RECORD names. Where that is not set,
// nothing is written. `make report` collects these lines; scripts/report draws them.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockd::bench {

// A name and its value, already as JSON.
class Member {
 public:
  template <std::integral Count>
  Member(std::string_view name, Count count) : Member(name, std::to_string(count), Json{}) {}
  Member(std::string_view name, double value);
  Member(std::string_view name, std::string_view text);  // needs no escapes: our own words

  const std::string& json() const { return json_; }

 private:
  struct Json {};
  Member(std::string_view name, std::string_view value, Json);

  std::string json_;
};

// Throws std::runtime_error if it cannot be written: a report must not lack what was measured.
void record(std::string_view figure, std::initializer_list<Member> members);

}  // namespace lockd::bench
