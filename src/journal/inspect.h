// Looks at a journal's directory without changing anything, for people and for tools. It needs no
// lock: of a journal in use it shows what was there a moment ago, and its end may look torn.
#pragma once

#include <cstdint>
#include <string>

#include "journal/recovery.h"
#include "journal/segment_reader.h"
#include "journal/storage.h"
#include "lockd/journal.h"

namespace lockd {

// Is shown what is there, in the order of the files. Everything may be left as it is.
class Inspector {
 public:
  virtual ~Inspector() = default;

  virtual void segment(const SegmentHeader& header, std::uint64_t file_size);
  virtual void frame(const Frame& frame);  // in the last segment shown
  virtual void event(const Event& event);  // in the last frame shown
  // Bytes behind the last frame shown that are neither a frame nor space that is not used yet.
  virtual void stray_bytes(std::uint64_t segment, std::uint64_t offset, std::uint64_t size);
  // A file that has no header, or a frame with a record that makes no sense.
  virtual void nonsense(std::uint64_t segment, std::uint64_t offset);
};

// Shows every frame and every event of every segment, damaged or not, as far as each can be read.
// Throws JournalError when a file cannot be read at all.
void inspect(Storage& storage, Inspector& inspector);

// Whether a start would succeed, with every event looked at.
struct Verdict {
  bool sound = false;
  std::string problem{};  // when it is not: file, byte, and what can be done
  std::uint64_t segments = 0;
  std::uint64_t frames = 0;
  std::uint64_t events = 0;
  std::uint64_t torn_size = 0;  // of a tail that a start would cut off; that is not damage
};

Verdict verify(Storage& storage);

// The same for a real directory, which is opened to be read.
void inspect(const std::string& directory, Inspector& inspector);
Verdict verify(const std::string& directory);

}  // namespace lockd
