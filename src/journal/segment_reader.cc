#include "journal/segment_reader.h"

#include <algorithm>
#include <utility>

#include "base/crc.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

constexpr std::size_t kWindowSize = std::size_t{256} << 10;

[[noreturn]] void fail(const std::string& path, std::uint64_t offset, const Fault& fault) {
  throw JournalError(path + ", byte " + std::to_string(offset) + ": " + fault.message() +
                     "; look after the disk before starting again");
}

// How much is left of `bytes` without the zeros at its end.
std::size_t size_without_zeros(std::string_view bytes) {
  const std::size_t last = bytes.find_last_not_of('\0');
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace

SegmentReader::SegmentReader(StorageFile& file, std::string path)
    : file_(file), path_(std::move(path)) {
  if (const Fault fault = file_.size(&size_)) fail(path_, 0, fault);
}

HeaderFault SegmentReader::read_header(SegmentHeader* header, std::uint32_t* version) {
  return decode(view(0, kSegmentHeaderSize), header, version);
}

bool SegmentReader::next(Frame* frame) {
  if (!decode(view(offset_, kFrameHeaderSize), &frame->header)) return false;
  frame->offset = offset_;
  if (frame->end_offset() > size_) return false;  // before anything is made room for
  frame->payload = view(offset_, kFrameHeaderSize + frame->header.payload_size);
  frame->payload.remove_prefix(kFrameHeaderSize);
  if (crc32c(frame->payload) != frame->header.payload_crc) return false;
  offset_ = frame->end_offset();
  return true;
}

// A header's checksum is enough: it says what had been synced before, whether its own payload is
// whole or not. So every byte is looked at once.
SegmentReader::Rest SegmentReader::look_behind(std::uint64_t offset) {
  Rest rest;
  std::uint64_t at = offset;
  while (at < size_) {
    std::string_view bytes = view(at, kWindowSize);
    if (bytes.empty()) break;  // it became shorter meanwhile
    if (const std::size_t used = size_without_zeros(bytes); used != 0) {
      rest.size = at + used - offset;
    }
    // The last few bytes of a window are looked at again as the first of the next: a header may
    // begin there.
    const bool last = bytes.size() < kWindowSize || at + bytes.size() >= size_;
    const std::size_t step = last ? bytes.size() : bytes.size() - kFrameHeaderSize + 1;
    for (std::size_t i = 0; i < step; ++i) {
      const std::size_t mark = find_frame_mark(bytes.substr(i, step - i));
      if (mark == std::string_view::npos) break;
      i += mark;
      FrameHeader header;
      if (decode(bytes.substr(i), &header)) rest.synced = std::max(rest.synced, header.synced);
    }
    at += step;
  }
  return rest;
}

// The bytes from `offset` on; fewer than `size` only at the end of the file. Until the next call.
std::string_view SegmentReader::view(std::uint64_t offset, std::size_t size) {
  if (offset >= size_) return {};
  size = std::min<std::uint64_t>(size, size_ - offset);
  const bool inside = offset >= window_offset_ && offset + size <= window_offset_ + window_size_;
  if (!inside) {
    const std::size_t wanted = std::max(size, std::min<std::size_t>(kWindowSize, size_ - offset));
    if (window_.size() < wanted) window_.resize(wanted);
    window_offset_ = offset;
    window_size_ = 0;
    const Fault fault = file_.read(offset, {window_.data(), wanted}, &window_size_);
    if (fault) fail(path_, offset, fault);
  }
  const std::string_view window(window_.data(), window_size_);
  return window.substr(std::min<std::uint64_t>(offset - window_offset_, window_size_), size);
}

}  // namespace lockd
