#include "cluster/peer_frame.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/coding.h"
#include "base/text.h"

namespace lockd {
namespace {

bool is_type(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(FrameType::open) &&
         type <= static_cast<std::uint8_t>(FrameType::clock);
}

void write_one(std::string& out, FrameType type, SessionId client, std::string_view payload) {
  std::array<char, kFrameHeadSize> head;
  head[0] = static_cast<char>(type);
  store<std::uint64_t>(head.data() + 1, client);
  store<std::uint32_t>(head.data() + 9, static_cast<std::uint32_t>(payload.size()));
  out.append(head.data(), head.size());
  out += payload;
}

void add_text(std::string& bytes, std::string_view text) {
  std::array<char, sizeof(std::uint16_t)> size;
  store<std::uint16_t>(size.data(), static_cast<std::uint16_t>(text.size()));
  bytes.append(size.data(), size.size());
  bytes += text;
}

// As long as what it is of may be, and as plain.
bool take_text(std::string_view& bytes, std::string* text) {
  std::uint16_t size = 0;
  if (!take(bytes, &size) || size > bytes.size() || size > kNameSizeMax) return false;
  *text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return is_plain_text(*text);
}

}  // namespace

void write_frame(std::string& out, FrameType type, SessionId client, std::string_view payload) {
  do {
    const std::string_view piece = payload.substr(0, kFramePayloadMax);
    write_one(out, type, client, piece);
    payload.remove_prefix(piece.size());
  } while (!payload.empty());
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  store(bytes.data(), number);
  return bytes;
}

FrameStatus take_frame(std::string_view& unread, Frame* frame) {
  std::string_view rest = unread;
  std::uint8_t type = 0;
  std::uint32_t size = 0;
  if (!take(rest, &type)) return FrameStatus::incomplete;
  if (!is_type(type)) return FrameStatus::malformed;
  if (!take(rest, &frame->client) || !take(rest, &size)) return FrameStatus::incomplete;
  if (size > kFramePayloadMax) return FrameStatus::malformed;
  if (rest.size() < size) return FrameStatus::incomplete;
  frame->type = static_cast<FrameType>(type);
  frame->payload = rest.substr(0, size);
  unread = rest.substr(size);
  return FrameStatus::complete;
}

std::optional<std::uint64_t> number_in(std::string_view payload) {
  std::uint64_t number = 0;
  if (!take(payload, &number) || !payload.empty()) return {};
  return number;
}

std::string to_bytes(const Opening& opening) {
  const bool flags[] = {opening.is_http, opening.is_loopback, opening.is_tls, opening.names_itself,
                        opening.has_certificate};
  unsigned bits = 0;
  for (std::size_t i = 0; i < std::size(flags); ++i) bits |= unsigned{flags[i]} << i;
  std::string bytes = static_cast<char>(bits) + number_bytes(opening.connected_ms);
  for (const std::string* text :
       {&opening.peer, &opening.name, &opening.note, &opening.principal}) {
    add_text(bytes, *text);
  }
  return bytes;
}

std::optional<Opening> opening_in(std::string_view bytes) {
  Opening opening;
  std::uint8_t bits = 0;
  if (!take(bytes, &bits) || !take(bytes, &opening.connected_ms)) return {};
  bool* const flags[] = {&opening.is_http, &opening.is_loopback, &opening.is_tls,
                         &opening.names_itself, &opening.has_certificate};
  for (std::size_t i = 0; i < std::size(flags); ++i) *flags[i] = (bits >> i & 1) != 0;
  for (std::string* text : {&opening.peer, &opening.name, &opening.note, &opening.principal}) {
    if (!take_text(bytes, text)) return {};
  }
  if (!bytes.empty() || opening.peer.size() > kPeerSizeMax) return {};
  if (opening.names_itself && !is_name(opening.name)) return {};
  return opening;
}

}  // namespace lockd
