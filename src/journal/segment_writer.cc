#include "journal/segment_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/crc.h"

namespace lockd {

Fault SegmentWriter::create(Storage& storage, const SegmentHeader& header,
                            const SegmentWriterOptions& options,
                            std::unique_ptr<SegmentWriter>* writer) {
  Made made;
  if (const Fault fault = make_file(storage, header, options, &made)) return fault;
  if (const Fault fault = made->make_room(0)) return fault;
  return make_durable(storage, std::move(made), writer);
}

Fault SegmentWriter::create_within(std::uint64_t space, Storage& storage,
                                   const SegmentHeader& header, const SegmentWriterOptions& options,
                                   std::unique_ptr<SegmentWriter>* writer) {
  Made made;
  space -= std::min<std::uint64_t>(space, kSegmentHeaderSize);
  if (const Fault fault = make_file(storage, header, options, &made)) return fault;
  if (const Fault fault = made->take_space(space / 2, space)) return fault;
  return make_durable(storage, std::move(made), writer);
}

Fault SegmentWriter::make_file(Storage& storage, const SegmentHeader& header,
                               const SegmentWriterOptions& options, Made* made) {
  std::unique_ptr<StorageFile> file;
  if (const Fault fault = storage.create(segment_name(header.number), &file)) return fault;
  if (const Fault fault = file->write(0, encode(header))) return fault;
  *made = std::make_unique<SegmentWriter>(std::move(file), header.number, kSegmentHeaderSize,
                                          kSegmentHeaderSize, options);
  return {};
}

Fault SegmentWriter::make_durable(Storage& storage, Made made, Made* writer) {
  if (const Fault fault = made->sync()) return fault;
  if (const Fault fault = storage.sync_directory()) return fault;
  *writer = std::move(made);
  return {};
}

SegmentWriter::SegmentWriter(std::unique_ptr<StorageFile> file, std::uint64_t number,
                             std::uint64_t offset, std::uint64_t size,
                             const SegmentWriterOptions& options)
    : file_(std::move(file)),
      number_(number),
      options_(options),
      offset_(offset),
      allocated_(std::max(offset, size)),
      step_(options.step_min) {}

Fault SegmentWriter::make_room(std::uint64_t size) {
  if (has_room(size)) return {};
  const std::uint64_t least = offset_ + size + options_.reserve;
  const std::uint64_t wanted = least + step_;
  Fault fault = file_->allocate(allocated_, wanted);
  std::uint64_t got = wanted;
  if (fault.is_no_space() && least < wanted) {
    got = least;
    fault = file_->allocate(allocated_, least);
  }
  if (fault) return fault;
  allocated_ = got;
  step_ = std::min(2 * step_, options_.step_max);
  return {};
}

Fault SegmentWriter::give_back_all_but(std::uint64_t size) {
  if (space() <= size) return {};
  const Fault fault = file_->truncate(offset_ + size);
  if (!fault) allocated_ = offset_ + size;
  return fault;
}

// Asks for less and less: how much a file system needs for itself is not known.
Fault SegmentWriter::take_space(std::uint64_t least, std::uint64_t most) {
  constexpr std::uint64_t kBlock = 4096;
  for (std::uint64_t less = 0;; less = std::max(kBlock, 2 * less)) {
    const std::uint64_t size = std::max(least, most - std::min(most, less));
    if (size == 0) return {};
    const Fault fault = file_->allocate(allocated_, allocated_ + size);
    if (!fault) allocated_ += size;
    if (!fault.is_no_space() || size == least) return fault;
  }
}

Fault SegmentWriter::write(FrameHeader header, std::span<char> bytes) {
  const std::string_view payload =
      std::string_view(bytes.data(), bytes.size()).substr(kFrameHeaderSize);
  header.payload_size = static_cast<std::uint32_t>(payload.size());
  header.payload_crc = crc32c(payload);
  encode(header, bytes.data());
  const Fault fault = file_->write(offset_, {bytes.data(), bytes.size()});
  if (!fault) offset_ += bytes.size();
  return fault;
}

}  // namespace lockd
