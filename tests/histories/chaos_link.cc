#include "histories/chaos_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lockd::histories {
namespace {

constexpr Instant kDelay = 40'000'000;
constexpr std::size_t kHeldMax = 256 * 1024;
// So many segments of one byte at a time: others want to be served as well.
constexpr std::size_t kSplitMax = 256;

}  // namespace

ChaosProxy::Link::~Link() {
  ::close(up_.from);
  ::close(down_.from);
}

void ChaosProxy::Link::break_it(LinkFault fault, Instant until, std::mt19937_64& random) {
  switch (fault) {
    case LinkFault::cut: reset(); break;
    case LinkFault::half_close:
      ::shutdown(up_.to, SHUT_WR);
      up_.told = up_.dropped = true;
      break;
    case LinkFault::delay: up_.delayed_until = down_.delayed_until = until; break;
    case LinkFault::split: up_.split_until = down_.split_until = until; break;
    case LinkFault::stall_up: up_.stalled_until = until; break;
    case LinkFault::stall_down: down_.stalled_until = until; break;
    case LinkFault::truncate:
      (random() % 2 == 0 ? up_ : down_).left = static_cast<std::int64_t>(random() % 200);
      break;
  }
}

void ChaosProxy::Link::reset() {
  const linger none{.l_onoff = 1, .l_linger = 0};
  for (const int socket : {up_.from, down_.from}) {
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  up_.left = down_.left = 0;  // over at the next turn
}

bool ChaosProxy::Link::advance(Instant now, bool ending) {
  if (up_.left == 0 || down_.left == 0) {
    reset();
    return false;
  }
  if (!advance(up_, now, ending) || !advance(down_, now, ending)) return false;
  // When the server has said its last word the client has nobody to talk to.
  return !down_.told && !(up_.told && up_.ended && down_.ended);
}

bool ChaosProxy::Link::advance(Way& way, Instant now, bool ending) {
  if (way.stalled_until > now) return true;
  way.stalled_until = 0;
  if (!read(way, now, ending) || !send(way, now)) return false;
  if (way.ended && way.held.empty() && !way.told) {
    ::shutdown(way.to, SHUT_WR);
    way.told = true;
  }
  return true;
}

// Who is told of an end together with bytes is not told again.
bool ChaosProxy::Link::read(Way& way, Instant now, bool ending) {
  std::array<char, 16 * 1024> bytes;
  while (!way.ended && way.held.size() < kHeldMax) {
    const ssize_t size = ::recv(way.from, bytes.data(), bytes.size(), 0);
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) {
      reset();
      return false;
    }
    if (size == 0) way.ended = true;
    if (way.dropped) continue;
    if (way.held.empty() && way.delayed_until > now) way.release_at = now + kDelay;
    way.held.append(bytes.data(), static_cast<std::size_t>(size));
    if (!ending && static_cast<std::size_t>(size) < bytes.size()) break;
  }
  return true;
}

bool ChaosProxy::Link::send(Way& way, Instant now) {
  if (way.release_at > now) return true;
  std::size_t sent = 0;
  const bool splits = way.split_until > now;
  while (sent < way.held.size() && !(splits && sent >= kSplitMax)) {
    std::size_t size = splits ? 1 : way.held.size() - sent;
    if (way.left > 0) size = std::min(size, static_cast<std::size_t>(way.left));
    const ssize_t now_sent = ::send(way.to, way.held.data() + sent, size, MSG_NOSIGNAL);
    if (now_sent < 0 && errno == EAGAIN) break;
    if (now_sent < 0) {
      reset();
      return false;
    }
    sent += static_cast<std::size_t>(now_sent);
    if (way.left > 0 && (way.left -= now_sent) == 0) return true;
  }
  way.held.erase(0, sent);
  return true;
}

}  // namespace lockd::histories
