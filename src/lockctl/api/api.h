// The API of a server, whichever port carries it: HTTP, or the line protocol's command `api`.
//
//   const std::unique_ptr<Api> api = api_of(invocation, key);
//   const ApiReply reply = api->get("/v1/fence", {{"key", key}});
//   require(reply);
//
// Blocks, for a bounded time. Throws Failure when there is no answer; an answer that says no is
// one. Used by one thread at a time, except interrupt().
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockctl/output/failure.h"
#include "lockd/types.h"

namespace lockd::cli {

// JSON as it stands: an array, or an object.
struct JsonText {
  std::string text;
};

// What a call asks for by name: a part of a query to HTTP, a member of an object to the line port.
struct Parameter {
  std::string_view name;
  std::variant<std::string, std::uint64_t, bool, JsonText> value;
};
using Parameters = std::vector<Parameter>;

// "?prefix=a%2F&limit=10", or nothing when there are none.
std::string query_of(const Parameters& parameters);
// {"prefix":"a/","limit":10}
std::string object_of(const Parameters& parameters);

struct ApiReply {
  unsigned status = 0;  // that of HTTP
  std::string body{};

  bool is_ok() const { return status / 100 == 2; }
};

// What a reply that is not ok means: {"error":"held","detail":"..."}; with the key, where a call
// about several names one. Pure.
struct Refusal {
  std::string error{};  // the stable code, or empty when there is none
  std::string line{};   // for people
  ExitCode code = kExitProtocol;

  // Somebody else has it, and the wait is over.
  bool is_conflict() const { return error == "held" || error == "wait_timeout"; }
};

// Precondition: the reply is not ok.
Refusal refusal_of(const ApiReply& reply);

// Throws what a refusal means. Returns when the reply is ok.
void require(const ApiReply& reply);

class Api {
 public:
  // Takes an event, whose member `event` names its kind.
  using Sink = std::function<void(const boost::json::value& event)>;

  virtual ~Api() = default;

  virtual ApiReply get(const std::string& path, const Parameters& parameters = {}) = 0;
  // `wait` is what the server was asked to take its time for.
  virtual ApiReply post(const std::string& path, const Parameters& parameters,
                        Duration wait = {}) = 0;
  // Passes on events until the server ends the stream, which is a Failure too. Returns a refusal;
  // never an ok one.
  virtual ApiReply follow(const std::string& path, const Parameters& parameters,
                          const Sink& sink) = 0;

  // Any thread: what is under way, and everything after it, fails.
  virtual void interrupt() = 0;

  // Who was asked last, for people.
  virtual std::string server() const = 0;
};

// Who holds and waits for one key; the first of them, where that is too much for a line.
ApiReply ask_about_key(Api& api, const Parameters& question);

// Takes what is in the list of that name, page after page, for as long as more are wanted.
void for_each_listed(Api& api, const std::string& path, const Parameters& question,
                     std::string_view list, const std::function<std::uint64_t()>& wanted,
                     const std::function<void(const boost::json::value&)>& take);

}  // namespace lockd::cli
