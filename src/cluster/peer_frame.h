// The frames that two servers of a cluster exchange over their link, once each has proved that it
// belongs to the cluster.
//
//   u8 type   u64 client   u32 size   payload
//
// The client is the id that it has at the server it is connected to. Pure: bytes go in and come
// out; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockd/types.h"

namespace lockd {

enum class FrameType : std::uint8_t {
  open = 1,    // follower: a client has come; an Opening
  bytes = 2,   // both: what the client sends, and what it is sent
  taken = 3,   // both, u64: how many more of the bytes have left the receiver's buffers
  end = 4,     // follower, u64: the client sends no more but this many bytes, which follow
  close = 5,   // both: the client disconnects, or has to
  detach = 6,  // follower: the client has to leave, and did not choose to: its holds are kept
  clock = 7,   // leader, u64: its clock, in milliseconds; of no client
};

struct Frame {
  FrameType type = FrameType::bytes;
  SessionId client = 0;
  std::string_view payload{};
};

inline constexpr std::size_t kFrameHeadSize = 13;
inline constexpr std::size_t kFramePayloadMax = 64 * 1024;

// Bytes that are too many for one frame make several. Precondition: no other payload is.
void write_frame(std::string& out, FrameType type, SessionId client, std::string_view payload = {});
std::string number_bytes(std::uint64_t number);

// Takes a frame from the front of `unread`; its payload lies there.
enum class FrameStatus : std::uint8_t { complete, incomplete, malformed };
FrameStatus take_frame(std::string_view& unread, Frame* frame);
// The number that a payload is; none: it is something else.
std::optional<std::uint64_t> number_in(std::string_view payload);

// How much one end of a channel sends before the other has taken it.
inline constexpr std::size_t kChannelWindow = 64 * 1024;

// Who a client is, as the server says that it is connected to.
struct Opening {
  bool is_http = false;  // one request; else lines
  bool is_loopback = false;
  bool is_tls = false;
  bool names_itself = false;       // by `name` and `note`
  bool has_certificate = false;    // `principal` names a certificate, not an auth token
  std::uint64_t connected_ms = 0;  // when it connected, by the leader's clock
  std::string peer{};              // its address
  std::string name{};
  std::string note{};
  std::string principal{};  // of what it has shown; empty: nothing

  friend bool operator==(const Opening&, const Opening&) = default;
};

std::string to_bytes(const Opening& opening);
std::optional<Opening> opening_in(std::string_view bytes);

}  // namespace lockd
