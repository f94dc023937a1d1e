// Reads one segment from its front, a window of it at a time: memory stays the same however long
// the file is, and whatever its bytes claim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/format.h"
#include "journal/storage.h"

namespace lockd {

struct Frame {
  FrameHeader header{};
  std::uint64_t offset = 0;    // in the file
  std::string_view payload{};  // until the next call

  // It only says that all before it was synced: whoever wrote it was stopped then.
  bool closes() const {
    return payload.empty() && !header.completes && !header.seals && header.synced == header.end();
  }
  std::uint64_t end_offset() const { return offset + kFrameHeaderSize + header.payload_size; }
};

class SegmentReader {
 public:
  // `file` outlives it. Every call throws JournalError when the file cannot be read; `path` is what
  // it is called then.
  SegmentReader(StorageFile& file, std::string path);

  std::uint64_t size() const { return size_; }

  HeaderFault read_header(SegmentHeader* header, std::uint32_t* version);

  // The next frame, if there is a good one right behind the last. Otherwise false; offset() is then
  // where the good frames end.
  bool next(Frame* frame);
  std::uint64_t offset() const { return offset_; }

  // From `offset` on, wherever it may be: the largest position that any frame's header there says
  // was durable. And how far from `offset` the last byte is that is not zero; 0 if there is none.
  struct Rest {
    Position synced = 0;
    std::uint64_t size = 0;
  };
  Rest look_behind(std::uint64_t offset);

 private:
  std::string_view view(std::uint64_t offset, std::size_t size);

  StorageFile& file_;
  const std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = kSegmentHeaderSize;

  std::vector<char> window_;
  std::uint64_t window_offset_ = 0;
  std::size_t window_size_ = 0;
};

}  // namespace lockd
