// wal inspect, wal verify: what is in a journal's directory.
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>

#include "base/json_text.h"
#include "journal/format.h"
#include "journal/inspect.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockd/file_journal.h"

namespace lockd::cli {
namespace {

std::string hex(const JournalId& id) {
  std::string text;
  for (const unsigned char byte : id) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

// "2026-08-01T10:15:00Z"
std::string date_text(Time time) {
  const auto seconds = static_cast<std::time_t>(time.ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  return std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0 ? "-" : text;
}

std::string kind_text(Kind kind) { return kind == Kind::lock ? "lock" : "semaphore"; }

// Never the secret of a line token: who reads a journal needs not be able to release.
std::string holder_text(const Holder& holder) {
  return holder.is_secret() ? "tcp:" + std::to_string(holder.session_id())
                            : std::string(holder.name());
}

const char* cause_text(EndCause cause) {
  switch (cause) {
    case EndCause::released: return "released";
    case EndCause::expired: return "expired";
    case EndCause::disconnected: return "disconnected";
    case EndCause::revoked: return "revoked";
  }
  return "";
}

const char* type_text(Event::Type type) {
  switch (type) {
    case Event::Type::granted: return "granted";
    case Event::Type::resized: return "resized";
    case Event::Type::renewed: return "renewed";
    case Event::Type::ended: return "ended";
    case Event::Type::fence_floor: return "fence_floor";
  }
  return "";
}

// ", holder tcp:0, client ann@build-7:4711 at 10.0.0.7:51234 (deploy)": what is known of it.
std::string holder_phrase(const Event& event) {
  const ClientView& client = event.client;
  std::string phrase = ", holder " + printable(holder_text(event.holder));
  if (!client.name.empty()) phrase += ", client " + printable(client.name);
  if (!client.peer.empty()) phrase += " at " + printable(client.peer);
  if (!client.note.empty()) phrase += " (" + printable(client.note) + ")";
  return phrase;
}

void add_holder(JsonObject& json, const Event& event) {
  const ClientView& client = event.client;
  json.add("holder", holder_text(event.holder));
  if (!client.name.empty()) json.add("client", client.name);
  if (!client.peer.empty()) json.add("peer", client.peer);
  if (!client.note.empty()) json.add("note", client.note);
}

std::uint64_t whole_ms(Duration time) {
  return static_cast<std::uint64_t>(time.count()) / 1'000'000;
}

// For programs: an object a line, each with what it is in "record".
class JsonInspector final : public Inspector {
 public:
  explicit JsonInspector(Output& output) : output_(output) {}

  void segment(const SegmentHeader& header, std::uint64_t file_size) override {
    JsonObject json;
    json.add("record", "segment");
    json.add("number", header.number);
    json.add("file", segment_name(header.number));
    json.add("size", file_size);
    json.add("journal", hex(header.journal));
    json.add("start", header.start);
    json.add("engine_time_ns", header.engine_time.ns);
    print(json);
  }
  void frame(const Frame& frame) override {
    JsonObject json;
    json.add("record", "frame");
    json.add("offset", frame.offset);
    json.add("position", frame.header.position);
    json.add("synced", frame.header.synced);
    json.add("payload_size", frame.header.payload_size);
    json.add("engine_time_ns", frame.header.engine_time.ns);
    json.add("completes", frame.header.completes);
    json.add("seals", frame.header.seals);
    json.add("closes", frame.closes());
    print(json);
  }
  void event(const Event& event) override {
    JsonObject json;
    json.add("record", "event");
    json.add("type", type_text(event.type));
    if (event.type != Event::Type::fence_floor) {
      json.add("kind", kind_text(event.kind));
      json.add("key", event.key);
    }
    if (event.type != Event::Type::resized) json.add("fence", event.fence);
    if (event.type == Event::Type::granted) add_holder(json, event);
    if (event.type == Event::Type::granted || event.type == Event::Type::resized) {
      json.add("limit", event.limit);
    }
    if (event.first_limit != 0) json.add("first_limit", event.first_limit);
    if (event.mode == Mode::shared) json.add("mode", "shared");
    if (event.permits != 1) json.add("permits", event.permits);
    if (event.type == Event::Type::granted || event.type == Event::Type::renewed) {
      json.add("ttl_ms", whole_ms(event.ttl));
      json.add("expires_at_ns", event.expires_at.ns);
    }
    if (event.type == Event::Type::ended) json.add("cause", cause_text(event.cause));
    print(json);
  }
  void stray_bytes(std::uint64_t segment, std::uint64_t offset, std::uint64_t size) override {
    JsonObject json;
    json.add("record", "stray_bytes");
    json.add("segment", segment);
    json.add("offset", offset);
    json.add("size", size);
    print(json);
  }
  void nonsense(std::uint64_t segment, std::uint64_t offset) override {
    JsonObject json;
    json.add("record", "nonsense");
    json.add("segment", segment);
    json.add("offset", offset);
    print(json);
  }

 private:
  void print(JsonObject& json) { output_.line(json.finish()); }

  Output& output_;
};

class TextInspector final : public Inspector {
 public:
  explicit TextInspector(Output& output) : output_(output), style_(output.style()) {}

  void segment(const SegmentHeader& header, std::uint64_t file_size) override {
    output_.line(style_.bold(segment_name(header.number)) + "  " + grouped(file_size) +
                 " bytes, from position " + std::to_string(header.start) + ", made " +
                 date_text(header.engine_time) + ", journal " + hex(header.journal));
  }
  void frame(const Frame& frame) override {
    output_.line("  " + style_.dim("frame at byte " + std::to_string(frame.offset) + ", position " +
                                   std::to_string(frame.header.position) + ", " +
                                   std::to_string(frame.header.payload_size) + " bytes, " +
                                   date_text(frame.header.engine_time) +
                                   (frame.header.completes ? ", completes a snapshot" : "") +
                                   (frame.header.seals ? ", seals the segment" : "") +
                                   (frame.closes() ? ", closes the journal" : "")));
  }
  void event(const Event& event) override {
    std::string line = "    " + std::string(type_text(event.type));
    if (event.type != Event::Type::fence_floor) {
      line += ' ' + kind_text(event.kind) + ' ' + in_quotes(event.key);
    }
    if (event.type == Event::Type::resized) {
      line += ", limit " + std::to_string(event.limit);
    } else {
      line += ", fence " + std::to_string(event.fence);
    }
    if (event.type == Event::Type::granted) line += holder_phrase(event);
    if (event.mode == Mode::shared) line += ", shared";
    if (event.permits != 1) line += ", " + std::to_string(event.permits) + " permits";
    if (event.type == Event::Type::granted || event.type == Event::Type::renewed) {
      line += ", for " + human(event.ttl) + " until " + date_text(event.expires_at);
    }
    if (event.type == Event::Type::ended) line += ", " + std::string(cause_text(event.cause));
    output_.line(line);
  }
  void stray_bytes(std::uint64_t, std::uint64_t offset, std::uint64_t size) override {
    output_.line("  " + style_.red(grouped(size) + " bytes from byte " + std::to_string(offset) +
                                   " on are no frame"));
  }
  void nonsense(std::uint64_t segment, std::uint64_t offset) override {
    output_.line("  " + style_.red(segment_name(segment) + ", byte " + std::to_string(offset) +
                                   ": makes no sense"));
  }

 private:
  Output& output_;
  const Style style_;
};

std::string directory_of(const Arguments& arguments) {
  const std::string& directory = arguments.operands().front();
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return directory;
  throw Failure(kExitNoInput, in_quotes(directory) + " is not a directory");
}

}  // namespace

int execute_wal_inspect(const Invocation& invocation) {
  const std::string directory = directory_of(invocation.arguments);
  try {
    if (invocation.arguments.has("json")) {
      JsonInspector inspector(invocation.output);
      inspect(directory, inspector);
    } else {
      TextInspector inspector(invocation.output);
      inspect(directory, inspector);
    }
  } catch (const JournalError& error) {
    throw Failure(kExitNoInput, error.what());
  }
  return kExitOk;
}

int execute_wal_verify(const Invocation& invocation) {
  const std::string directory = directory_of(invocation.arguments);
  Verdict verdict;
  try {
    verdict = verify(directory);
  } catch (const JournalError& error) {
    throw Failure(kExitNoInput, error.what());
  }
  // An empty directory is no backup.
  if (verdict.sound && verdict.segments == 0) {
    throw Failure(kExitNoInput, "there is no journal in " + in_quotes(directory));
  }
  if (invocation.arguments.has("json")) {
    JsonObject json;
    json.add("sound", verdict.sound);
    json.add("segments", verdict.segments);
    json.add("frames", verdict.frames);
    json.add("events", verdict.events);
    json.add("torn_size", verdict.torn_size);
    if (!verdict.sound) json.add("problem", as_utf8(verdict.problem));
    invocation.output.line(json.finish());
  } else if (verdict.sound) {
    invocation.output.line(
        "sound: " + grouped(verdict.segments) + " segments, " + grouped(verdict.frames) +
        " frames, " + grouped(verdict.events) + " events" +
        (verdict.torn_size == 0
             ? ""
             : ", and " + grouped(verdict.torn_size) + " torn bytes that a start would cut off"));
  } else {
    invocation.output.line(invocation.output.style().red("damaged: ") + printable(verdict.problem));
  }
  return verdict.sound ? kExitOk : kExitData;
}

}  // namespace lockd::cli
