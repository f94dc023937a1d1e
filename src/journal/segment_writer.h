// One segment that is being written. Used by one thread at a time.
//
// Space is taken ahead of the frames, in steps that double: a sync then has only bytes to write,
// not the file's size; and what is taken and not yet used is the reserve that the journal lives on
// when the disk is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "journal/format.h"
#include "journal/storage.h"

namespace lockd {

struct SegmentWriterOptions {
  std::uint64_t reserve = std::uint64_t{1} << 20;  // taken ahead, at least
  std::uint64_t step_min = std::uint64_t{1} << 20;
  std::uint64_t step_max = std::uint64_t{8} << 20;
};

class SegmentWriter {
 public:
  // Makes the segment: its header, its first space and its name are durable on return. After a
  // fault there may be a file of that name.
  static Fault create(Storage& storage, const SegmentHeader& header,
                      const SegmentWriterOptions& options, std::unique_ptr<SegmentWriter>* writer);
  // The same, on a disk that is full but for `space` bytes: with as much of them as it gets, and no
  // less than half.
  static Fault create_within(std::uint64_t space, Storage& storage, const SegmentHeader& header,
                             const SegmentWriterOptions& options,
                             std::unique_ptr<SegmentWriter>* writer);

  // Goes on with one that is there: behind its last frame, up to the end of the file.
  SegmentWriter(std::unique_ptr<StorageFile> file, std::uint64_t number, std::uint64_t offset,
                std::uint64_t size, const SegmentWriterOptions& options);

  std::uint64_t number() const { return number_; }
  std::uint64_t offset() const { return offset_; }  // where the next frame goes
  std::uint64_t space() const { return allocated_ - offset_; }

  // Whether `size` bytes can be written and the reserve is whole behind them.
  bool has_room(std::uint64_t size) const { return space() >= size + options_.reserve; }
  // Sees to that, unless there is a fault: no space is one that passes.
  Fault make_room(std::uint64_t size);
  // Gives back what is not used, but for `size` bytes.
  Fault give_back_all_but(std::uint64_t size);
  // Takes from `least` to `most` bytes of space.
  Fault take_space(std::uint64_t least, std::uint64_t most);

  // `bytes` begins with kFrameHeaderSize bytes for the header, which is filled in, its payload's
  // size and checksum too. There must be space for it.
  Fault write(FrameHeader header, std::span<char> bytes);
  Fault sync() { return file_->sync(); }
  bool is_in_place() { return file_->is_in_place(); }

 private:
  using Made = std::unique_ptr<SegmentWriter>;
  static Fault make_file(Storage& storage, const SegmentHeader& header,
                         const SegmentWriterOptions& options, Made* made);
  static Fault make_durable(Storage& storage, Made made, Made* writer);

  const std::unique_ptr<StorageFile> file_;
  const std::uint64_t number_;
  const SegmentWriterOptions options_;
  std::uint64_t offset_;
  std::uint64_t allocated_;
  std::uint64_t step_;
};

}  // namespace lockd
