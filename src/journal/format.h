// The bytes of a segment: its header, the frames behind it, and the records of events that their
// payloads are made of. docs/journal_format.md is the grammar.
//
// A position counts the bytes of payload since the journal was created, so it says where a frame
// belongs whichever segment it is in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/storage.h"
#include "lockd/journal.h"
#include "lockd/types.h"

namespace lockd {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kSegmentHeaderSize = 96;
inline constexpr std::size_t kFrameHeaderSize = 48;
inline constexpr std::size_t kPayloadMax = std::size_t{1} << 20;

using JournalId = std::array<unsigned char, 16>;

// "journal-000000000000002a.log"
std::string segment_name(std::uint64_t number);
// The number in such a name; nothing for any other name.
std::optional<std::uint64_t> segment_number(std::string_view name);

struct SegmentHeader {
  JournalId journal{};       // random; the same in all segments
  std::uint64_t number = 0;  // from 1, as in the file's name
  Position start = 0;        // of its first frame
  ClockReading opened{};     // when it was made, ...
  Time engine_time{};        // ... and the engine's time at that moment
};

std::string encode(const SegmentHeader& header);

enum class HeaderFault { none, torn, version };
// `version`: it is a header, of a format that this program does not know.
HeaderFault decode(std::string_view bytes, SegmentHeader* header, std::uint32_t* version);

// A frame is what was gathered for one write.
struct FrameHeader {
  bool completes = false;  // with it, the segment alone tells of everything
  bool seals = false;      // nothing follows in this segment; the next one exists
  std::uint32_t payload_size = 0;
  std::uint32_t payload_crc = 0;
  Position position = 0;  // of its payload's first byte
  Position synced = 0;    // everything up to here was durable when it was written
  Time engine_time{};     // when that was
  std::uint64_t wall_ns = 0;

  Position end() const { return position + payload_size; }
};

// Writes kFrameHeaderSize bytes.
void encode(const FrameHeader& header, char* to);
// False if there is no frame at the front of `bytes`.
bool decode(std::string_view bytes, FrameHeader* header);

// Where the first byte that can begin a frame is; npos if there is none.
std::size_t find_frame_mark(std::string_view bytes);

// Records.

// No event is longer: its texts, the numbers that may be long, and what frames them.
inline constexpr std::size_t kRecordSizeMax =
    kKeySizeMax + 2 * kHolderSizeMax + kPeerSizeMax + kNoteSizeMax + 64;

// So all of a set fits into one frame, of which a crash leaves all or none.
static_assert(kKeysPerSetMax * kRecordSizeMax <= kPayloadMax);

// Writes at `to`, which has room for kRecordSizeMax, and returns the end of it. The event's texts
// are within their limits.
char* encode(const Event& event, char* to);

// Takes an event from the front of `bytes`, which it then points into. False, and `bytes` at the
// record, if there is none: a type that is not known, a text or a number beyond its limits.
bool take_event(std::string_view& bytes, Event* event);

}  // namespace lockd
