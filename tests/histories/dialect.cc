#include "histories/dialect.h"

#include <charconv>
#include <cstdio>

namespace lockd::histories {
namespace {

constexpr std::string_view kNotLeader = "error_not_leader ";

std::uint64_t number_at(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

class LineDialect : public Dialect {
 public:
  std::string write(const Request& request) const override {
    std::string text = request.kind == Kind::semaphore ? "s" : "";
    const std::string ttl = std::to_string(request.ttl / kSecond);
    const std::string timeout = std::to_string(request.timeout / kSecond);
    const bool sem = request.kind == Kind::semaphore;
    const std::string limit = sem ? std::to_string(request.limit) + " " : "";
    const std::string terms = request.mode == Mode::shared ? " shared"
                              : request.permits == 1       ? ""
                                                           : " " + std::to_string(request.permits);
    const std::string as = request.rid == 0 ? "" : " as=" + secret_of(request.rid);
    std::string argument;
    switch (request.function) {
      case Function::acquire:
        text += 'l';
        argument = timeout + " " + limit + ttl + terms + as;
        break;
      case Function::enqueue:
        text += 'e';
        argument = limit + ttl + terms + as;
        break;
      case Function::wait:
        text += 'w';
        argument = timeout;
        break;
      case Function::renew:
        text += 'n';
        argument = request.token + " " + ttl;
        break;
      default:
        text += 'r';
        argument = request.token;
        break;
    }
    return (text + '\n').append(request.key_name) + '\n' + argument + '\n';
  }

  bool read(const Request& request, std::string& received, Reply& reply) const override {
    const std::size_t end = received.find('\n');
    if (end == std::string::npos) return false;
    const std::string line = received.substr(0, end);
    received.erase(0, end + 1);
    reply = {.result = result_of(request, line), .token = {}};
    reply.ends = line == "error_draining";
    const bool grants = request.function <= Function::wait;
    if (reply.result == Result::ok && grants) {
      reply.token = line.substr(line.find(' ') + 1, 32);
      reply.fence = number_at(std::string_view(reply.token).substr(0, 16), 16);
    }
    return true;
  }

 private:
  static Result result_of(const Request& request, std::string_view line) {
    if (line.starts_with("ok") || line.starts_with("acquired ")) return Result::ok;
    if (line == "queued") return Result::queued;
    if (line == "timeout") return Result::timeout;
    const bool follows_up =
        request.function == Function::renew || request.function == Function::release;
    if (follows_up && line == "error") return Result::not_held;
    if (line == "error_lease_expired" || line == "error_not_enqueued") return Result::not_held;
    if (line == "error_storage") return Result::storage;
    if (line.starts_with(kNotLeader)) return Result::not_leader;
    return line == "error_draining" ? Result::draining : Result::refused;
  }
};

// As replies name one of several keys.
std::string item_of(const RequestPart& part) {
  const std::string_view kind = part.kind == Kind::lock ? "lock" : "semaphore";
  return R"("key":")" + std::string(part.key_name) + R"(","kind":")" + std::string(kind) + '"';
}

// The terms of a lock or a semaphore, behind what else there is.
template <typename Asked>
std::string terms_of(const Asked& asked) {
  std::string text;
  if (asked.kind == Kind::semaphore) text += ",\"limit\":" + std::to_string(asked.limit);
  if (asked.mode == Mode::shared) text += R"(,"mode":"shared")";
  if (asked.permits != 1) text += ",\"permits\":" + std::to_string(asked.permits);
  return text;
}

class HttpDialect : public Dialect {
 public:
  std::string write(const Request& request) const override {
    std::string body = "{" + keys_of(request) + R"(,"holder":")" + holder_of(request.rid) + '"';
    std::string_view call = "release";
    if (request.function == Function::acquire) {
      call = "acquire";
      body += ",\"wait_ms\":" + std::to_string(request.timeout / 1'000'000);
      if (request.parts.empty()) body += terms_of(request);
    } else {
      body += ",\"token\":" + std::to_string(request.fence);
    }
    if (request.function != Function::release) {
      if (request.function == Function::renew) call = "renew";
      body += ",\"ttl_ms\":" + std::to_string(request.ttl / 1'000'000);
    }
    body += '}';
    const bool is_semaphore = request.parts.empty() && request.kind == Kind::semaphore;
    std::string text = is_semaphore ? "POST /v1/semaphores/" : "POST /v1/";
    text.append(call) += " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";
    return text + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  bool read(const Request& request, std::string& received, Reply& reply) const override {
    const std::size_t head = received.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t length = received.find("Content-Length: ");
    const std::size_t size =
        length < head ? number_at(std::string_view(received).substr(length + 16)) : 0;
    if (received.size() < head + 4 + size) return false;
    const std::string_view body = std::string_view(received).substr(head + 4, size);
    reply = {.token = {}};
    reply.result = result_of(number_at(std::string_view(received).substr(9, 3)), body);
    if (reply.result == Result::ok) reply.fence = number_behind(body, "\"token\":");
    if (!request.parts.empty()) reply.parts = results_of(request, reply.result, body);
    reply.ends = received.find("Connection: close") < head;
    received.erase(0, head + 4 + size);
    return true;
  }

 private:
  static std::string keys_of(const Request& request) {
    if (request.parts.empty()) return R"("key":")" + std::string(request.key_name) + '"';
    std::string items;
    for (const RequestPart& part : request.parts) {
      if (!items.empty()) items += ',';
      items += "{" + item_of(part);
      if (request.function == Function::acquire) items += terms_of(part);
      items += '}';
    }
    return "\"items\":[" + items + "]";
  }

  // A release says of each key what it found. A renewal that was refused names the first that is
  // not held, and of the others it says nothing.
  static std::vector<Result> results_of(const Request& request, Result whole,
                                        std::string_view body) {
    const bool releases = request.function == Function::release && whole == Result::ok;
    const bool names_one = request.function == Function::renew && whole == Result::not_held;
    if (!releases && !names_one) return {};
    const std::string_view released = body.substr(0, body.find("\"not_held\":"));
    std::vector<Result> results;
    for (const RequestPart& part : request.parts) {
      const bool is_named = (releases ? released : body).find(item_of(part)) != body.npos;
      if (releases) results.push_back(is_named ? Result::ok : Result::not_held);
      if (names_one) results.push_back(is_named ? Result::not_held : Result::refused);
    }
    return results;
  }

  static std::uint64_t number_behind(std::string_view text, std::string_view name) {
    const std::size_t at = text.find(name);
    return at == std::string_view::npos ? 0 : number_at(text.substr(at + name.size()));
  }

  static Result result_of(std::uint64_t status, std::string_view body) {
    if (status == 200) return Result::ok;
    const auto says = [body](std::string_view code) {
      return body.find(code) != std::string_view::npos;
    };
    if (status == 503 && says("\"not_leader\"")) return Result::not_leader;
    if (status == 503) return says("\"storage\"") ? Result::storage : Result::draining;
    if (status == 502) return Result::info;  // the leader was lost: it may have been executed
    if (status != 409) return Result::refused;
    for (const std::string_view code : {"\"held\"", "\"wait_timeout\""}) {
      if (says(code)) return Result::timeout;
    }
    for (const std::string_view code : {"\"expired\"", "\"stale_token\"", "\"not_holder\""}) {
      if (says(code)) return Result::not_held;
    }
    return Result::refused;
  }
};

}  // namespace

std::vector<Operation> operations_of(const Operation& whole, const Request& request,
                                     const Reply& reply) {
  if (request.parts.empty()) return {whole};
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const RequestPart& part = request.parts[i];
    Operation& operation = operations.emplace_back(whole);
    operation.key = part.key;
    operation.kind = part.kind;
    operation.limit = part.limit;
    operation.mode = part.mode;
    operation.permits = part.permits;
    operation.keys = static_cast<std::uint32_t>(request.parts.size());
    operation.result = reply.of_part(i);
  }
  return operations;
}

std::string holder_of(std::uint64_t rid) { return "r" + std::to_string(rid); }

// No two have the same, and they look like what clients draw.
std::string secret_of(std::uint64_t rid) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(rid * 0x9e3779b97f4a7c15));
  return text;
}

const Dialect& line_dialect() {
  static const LineDialect dialect;
  return dialect;
}

const Dialect& http_dialect() {
  static const HttpDialect dialect;
  return dialect;
}

}  // namespace lockd::histories
