// How requests are put to a server, and what its replies mean: as lines, or as HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "histories/operation.h"

namespace lockd::histories {

// One of the keys that a request for several names.
struct RequestPart {
  std::uint32_t key = 0;
  std::string_view key_name{};
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};

struct Request {
  Function function = Function::acquire;
  std::uint32_t key = 0;
  std::string_view key_name;
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Instant ttl = 0;
  Instant timeout = 0;
  Fence fence = 0;
  std::string token;                 // of the line protocol
  std::uint64_t rid = 0;             // the holder's name, or of a line its secret; 0: none
  std::vector<RequestPart> parts{};  // several keys in one step, by name, in place of the one above
};

struct Reply {
  Result result = Result::info;
  Fence fence = 0;
  std::string token;
  bool ends = false;  // the server closes after it
  // Of a request for several keys, where they fared differently: what became of each.
  std::vector<Result> parts{};

  Result of_part(std::size_t i) const { return parts.empty() ? result : parts[i]; }
};

// What is noted of a request: an operation for each of its keys.
std::vector<Operation> operations_of(const Operation& whole, const Request& request,
                                     const Reply& reply);

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string write(const Request& request) const = 0;
  // Takes the reply to `request` off the front of `received`. False when it is not all there.
  virtual bool read(const Request& request, std::string& received, Reply& reply) const = 0;
};

const Dialect& line_dialect();
const Dialect& http_dialect();

// The holder of that name, and what a line asks by again.
std::string holder_of(std::uint64_t rid);
std::string secret_of(std::uint64_t rid);

}  // namespace lockd::histories
