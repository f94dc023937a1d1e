// JsonCodec: the calls of the API and their replies, as JSON. HTTP carries them, and so does the
// line command `api`.
//
// One call at a time. The codec keeps its parameters until the reply is written, because a reply
// repeats the keys and the holder. Pure: no clock, engine or connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "protocol/http/http_request.h"
#include "protocol/http/request_params.h"
#include "protocol/http/routes.h"
#include "pubsub/signal_hub.h"
#include "server/client_registry.h"
#include "server/settings/options.h"
#include "service/call.h"
#include "service/reply.h"

namespace lockd {

struct JsonReply {
  int status = 200;
  std::string body{};
  std::string fields{};  // further header fields for HTTP, each with its CR LF
  std::string error{};   // the code of a refusal: "held"
};

// A refusal with a code and a text for people.
JsonReply json_refusal(const HttpError& error, std::string fields = {});

// Events of streams.
std::string signal_json(const Signal& signal);
std::string missed_json(std::uint64_t count);

// The header fields of a 503: when to try again, and where. `leader` may be null.
std::string advice_for(const HttpError& error, const LeaderAddress* leader);

class JsonCodec {
 public:
  JsonCodec(const Options& options, const ClientRegistry& clients)
      : options_(options), clients_(clients) {}

  // Reads the parameters of a call. `channel` stands for {channel} in the path. Returns what is
  // wrong with them, or status 0.
  HttpError read(HttpCall call, std::string_view channel, RequestParams params);
  // What was read. Its views refer to this codec and to `channel`.
  const Call& call() const { return call_; }

  struct Times {
    Time now{};
    std::int64_t unix_ms = 0;
  };
  // Precondition: the reply is neither Blocked nor StreamBegun nor a piece of a report.
  JsonReply write(const Reply& reply, Times times) const;

 private:
  // How the request names its keys, and so the reply.
  enum class Shape : std::uint8_t { key, keys, items };

  Call read_call(HttpCall call, std::string_view channel);
  Acquire read_acquire(Kind kind);
  HoldId read_hold(Kind kind);
  KeyItems read_keys(Kind kind, bool takes);
  Publish read_publish(std::string_view channel);
  Listen read_listen();
  Revoke read_revoke();
  ReadReport read_report(ReportRequest request);
  ReadReport read_key_listing();
  ReadReport read_client_listing();
  ReadReport read_history();
  Duration lease(std::optional<std::int64_t> ttl_ms) const;
  void refuse_duplicates();

  JsonReply write_grant(const Grant& grant, bool is_renewal, Times times) const;
  JsonReply write_released(const Released& released) const;
  JsonReply write_refusal(const Refused& refused, Times times) const;
  JsonReply write_rejection(const Rejected& rejected) const;
  JsonReply write_revoked(const RevokeResult& revoked) const;
  void add_conflict(JsonObject& json, const Refused& refused, Times times) const;
  std::string conflicts_json(const Refused& refused, Times times) const;
  std::string name_json(const KeyItem& item) const;
  std::string keys_json(bool with_amounts) const;
  std::string_view holder() const;

  const Options& options_;
  const ClientRegistry& clients_;
  RequestParams params_;
  Shape shape_ = Shape::key;
  std::vector<KeyItem> items_;
  Call call_;
};

}  // namespace lockd
