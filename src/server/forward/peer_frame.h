// What two servers of a cluster say to each other over their link, once each has proved that it
// belongs: frames.
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
  open = 1,    // a ForwardedClient has come, is back, or is called otherwise by now
  bytes = 2,   // of the line protocol: requests, or what they are answered
  taken = 3,   // u64: so many more of the bytes have reached the client
  end = 4,     // the client sends no more
  close = 5,   // it is gone, or has to go
  detach = 6,  // it has to leave, and keeps what it holds
  opened = 7,  // u64: the session that it is here
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
void write_frame(std::string& out, FrameType type, SessionId client, std::uint64_t number);

// Takes a frame from the front of `unread`; its payload lies there.
enum class FrameStatus : std::uint8_t { complete, incomplete, malformed };
FrameStatus take_frame(std::string_view& unread, Frame* frame);
// The number that a payload is; none: it is something else.
std::optional<std::uint64_t> number_in(std::string_view payload);

// Who a client is, as the server says that it is connected to.
struct ForwardedClient {
  SessionId session = 0;      // that it had at this leader; 0: none
  bool names_itself = false;  // by `name` and `note`
  std::string peer{};         // its address
  std::string name{};
  std::string note{};
  std::string token_name{};  // of what it has shown

  friend bool operator==(const ForwardedClient&, const ForwardedClient&) = default;
};

std::string to_bytes(const ForwardedClient& client);
std::optional<ForwardedClient> forwarded_client_in(std::string_view bytes);

}  // namespace lockd
