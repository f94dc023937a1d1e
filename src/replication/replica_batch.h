// A batch as the value of its key: a header of 48 bytes, then events as the journal's records are.
//
//   0  u32  mark, "LkB1"          16  u64  its predecessor's seq
//   4  u32  CRC32C of the rest    24  u64  position
//   8  u64  predecessor's epoch   32  u64  the leader's time
//                                 40       zeros
//
// Every batch names its predecessor, so a reader that missed one knows. The first of an epoch has
// no events: it says where the epoch begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "journal/format.h"
#include "lockd/journal.h"
#include "replication/batch_id.h"

namespace lockd {

// What AppendBuffer leaves free in front of each chunk.
inline constexpr std::size_t kBatchHeaderSize = kFrameHeaderSize;
static_assert(kBatchHeaderSize == 48);

struct BatchHeader {
  BatchId previous{};     // none: it is the first of all
  Position position = 0;  // of its first event, over all epochs
  // When it was made, by the clock of its deadlines. Whoever leads next does so later: a lease that
  // lasts from then for what was left of it now does not end early.
  Time made_at{};
};

// Where the next one begins. An empty batch counts as one, so that there is a position behind it.
inline Position end_of(const BatchHeader& header, std::size_t payload_size) {
  return header.position + (payload_size == 0 ? 1 : payload_size);
}

// Fills in the header at the front of `bytes`, behind which the events are.
void seal(const BatchHeader& header, std::string& bytes);

// False when it is no batch, or damaged. `payload` then points into `bytes`.
bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload);

}  // namespace lockd
