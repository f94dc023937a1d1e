#include "server/stats.h"

#include <array>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/json_text.h"

namespace lockd {
namespace {

template <typename Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits;
  out.append(digits.data(),
             std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

// To the millisecond, as seconds.
void append_seconds(std::string& out, Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  append_number(out, static_cast<double>(ms) / 1000);
}

// A list that is being written: `,` between its members.
class Members {
 public:
  std::string& next() {
    if (!text_.empty()) text_ += ',';
    return text_;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void append_lock(std::string& out, const KeyStatus& key) {
  out += R"({"key":)";
  append_json_string(out, key.key);
  out += R"(,"owner_conn_id":)";
  append_number(out, key.holds.empty() ? 0 : key.holds[0].session);
  out += R"(,"lease_expires_in_s":)";
  append_seconds(out, key.holds.empty() ? Duration::zero() : key.holds[0].remaining);
  out += R"(,"waiters":)";
  append_number(out, key.waiters);
  out += '}';
}

void append_semaphore(std::string& out, const KeyStatus& key) {
  out += R"({"key":)";
  append_json_string(out, key.key);
  out += R"(,"limit":)";
  append_number(out, key.limit);
  out += R"(,"holders":)";
  append_number(out, key.holders);
  out += R"(,"waiters":)";
  append_number(out, key.waiters);
  out += '}';
}

void append_idle(std::string& out, const KeyStatus& key) {
  out += R"({"key":)";
  append_json_string(out, key.key);
  out += R"(,"idle_s":)";
  append_seconds(out, key.idle);
  out += '}';
}

}  // namespace

std::string stats_json(Engine& engine, const SignalHub& hub, std::uint64_t connections) {
  Members locks;
  Members semaphores;
  Members idle_locks;
  Members idle_semaphores;
  const Position position = engine.list(
      [&](const KeyStatus& key) {
        const bool lock = key.kind == Kind::lock;
        if (key.holders == 0 && key.waiters == 0) {
          append_idle((lock ? idle_locks : idle_semaphores).next(), key);
        } else if (lock) {
          append_lock(locks.next(), key);
        } else {
          append_semaphore(semaphores.next(), key);
        }
      },
      1);
  if (!engine.wait_durable(position)) return {};
  Members channels;
  for (const AudienceStatus& audience : hub.list()) {
    std::string& out = channels.next();
    out += R"({"pattern":)";
    append_json_string(out, audience.pattern);
    if (!audience.group.empty()) {
      out += R"(,"group":)";
      append_json_string(out, audience.group);
    }
    out += R"(,"listeners":)";
    append_number(out, audience.listeners);
    out += '}';
  }
  std::string json = R"({"connections":)";
  append_number(json, connections);
  json += R"(,"locks":[)" + locks.text() + R"(],"semaphores":[)" + semaphores.text();
  json += R"(],"idle_locks":[)" + idle_locks.text() + R"(],"idle_semaphores":[)";
  json += idle_semaphores.text() + R"(],"signal_channels":[)" + channels.text() + "]}";
  return json;
}

}  // namespace lockd
