// wal inspect, wal verify: what is in a journal's directory.
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/values.h"
#include "journal/format.h"
#include "journal/inspect.h"
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
std::string date(Time time) {
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
  }
  return "";
}

const char* type_text(Event::Type type) {
  switch (type) {
    case Event::Type::granted: return "granted";
    case Event::Type::renewed: return "renewed";
    case Event::Type::ended: return "ended";
    case Event::Type::fence_floor: return "fence_floor";
  }
  return "";
}

std::uint64_t ms(Duration time) { return static_cast<std::uint64_t>(time.count()) / 1'000'000; }

// For programs: an object a line, each with what it is in "record".
class JsonInspector final : public Inspector {
 public:
  explicit JsonInspector(Output& output) : output_(output) {}

  void segment(const SegmentHeader& header, std::uint64_t file_size) override {
    print(ObjectWriter()
              .text("record", "segment")
              .number("number", header.number)
              .text("file", segment_name(header.number))
              .number("size", file_size)
              .text("journal", hex(header.journal))
              .number("start", header.start)
              .number("engine_time_ns", header.engine_time.ns));
  }
  void frame(const Frame& frame) override {
    print(ObjectWriter()
              .text("record", "frame")
              .number("offset", frame.offset)
              .number("position", frame.header.position)
              .number("synced", frame.header.synced)
              .number("payload_size", frame.header.payload_size)
              .number("engine_time_ns", frame.header.engine_time.ns)
              .truth("completes", frame.header.completes)
              .truth("seals", frame.header.seals));
  }
  void event(const Event& event) override {
    ObjectWriter json;
    json.text("record", "event").text("type", type_text(event.type));
    if (event.type != Event::Type::fence_floor) {
      json.text("kind", kind_text(event.kind)).text("key", event.key);
    }
    json.number("fence", event.fence);
    if (event.type == Event::Type::granted) {
      json.text("holder", holder_text(event.holder)).number("limit", event.limit);
    }
    if (event.type == Event::Type::granted || event.type == Event::Type::renewed) {
      json.number("ttl_ms", ms(event.ttl)).number("expires_at_ns", event.expires_at.ns);
    }
    if (event.type == Event::Type::ended) json.text("cause", cause_text(event.cause));
    print(json);
  }
  void stray_bytes(std::uint64_t segment, std::uint64_t offset, std::uint64_t size) override {
    print(ObjectWriter()
              .text("record", "stray_bytes")
              .number("segment", segment)
              .number("offset", offset)
              .number("size", size));
  }
  void nonsense(std::uint64_t segment, std::uint64_t offset) override {
    print(ObjectWriter().text("record", "nonsense").number("segment", segment).number("offset",
                                                                                       offset));
  }

 private:
  void print(const ObjectWriter& json) { output_.line(json.str()); }

  Output& output_;
};

class TextInspector final : public Inspector {
 public:
  explicit TextInspector(Output& output) : output_(output), style_(output.style()) {}

  void segment(const SegmentHeader& header, std::uint64_t file_size) override {
    output_.line(style_.bold(segment_name(header.number)) + "  " + grouped(file_size) +
                 " bytes, from position " + std::to_string(header.start) + ", made " +
                 date(header.engine_time) + ", journal " + hex(header.journal));
  }
  void frame(const Frame& frame) override {
    output_.line("  " + style_.dim("frame at byte " + std::to_string(frame.offset) +
                                   ", position " + std::to_string(frame.header.position) + ", " +
                                   std::to_string(frame.header.payload_size) + " bytes, " +
                                   date(frame.header.engine_time) +
                                   (frame.header.completes ? ", completes an account" : "") +
                                   (frame.header.seals ? ", seals the segment" : "")));
  }
  void event(const Event& event) override {
    std::string line = "    " + std::string(type_text(event.type));
    if (event.type != Event::Type::fence_floor) {
      line += ' ' + kind_text(event.kind) + ' ' + in_quotes(event.key);
    }
    line += ", fence " + std::to_string(event.fence);
    if (event.type == Event::Type::granted) line += ", holder " + printable(holder_text(event.holder));
    if (event.type == Event::Type::granted || event.type == Event::Type::renewed) {
      line += ", for " + human(event.ttl) + " until " + date(event.expires_at);
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
  if (invocation.arguments.has("json")) {
    ObjectWriter json;
    json.truth("sound", verdict.sound)
        .number("segments", verdict.segments)
        .number("frames", verdict.frames)
        .number("events", verdict.events)
        .number("torn_size", verdict.torn_size);
    if (!verdict.sound) json.text("problem", verdict.problem);
    invocation.output.line(json.str());
  } else if (verdict.sound) {
    invocation.output.line("sound: " + grouped(verdict.segments) + " segments, " +
                           grouped(verdict.frames) + " frames, " + grouped(verdict.events) +
                           " events" +
                           (verdict.torn_size == 0 ? ""
                                                   : ", and " + grouped(verdict.torn_size) +
                                                         " torn bytes that a start would cut off"));
  } else {
    invocation.output.line(invocation.output.style().red("damaged: ") + printable(verdict.problem));
  }
  return verdict.sound ? kExitOk : kExitData;
}

}  // namespace lockd::cli
