#include "server/acceptor.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <utility>

#include "server/admission.h"
#include "server/log.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kPause = 100ms;
// In one turn: the loop has clients of its own.
constexpr int kAcceptsPerTurn = 64;

// A descriptor that needs nothing but itself; none when there is none left.
Descriptor open_reserve() { return Descriptor(::eventfd(0, EFD_CLOEXEC)); }

Descriptor accept_from(int listening, tcp::endpoint& peer) {
  auto size = static_cast<socklen_t>(peer.capacity());
  Descriptor socket(::accept4(listening, peer.data(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) peer.resize(size);
  return socket;
}

}  // namespace

Acceptor::Acceptor(Loop& loop, Descriptor listening, WorkerStats& stats, Admit admit)
    : loop_(loop),
      stats_(stats),
      admit_(std::move(admit)),
      listening_(std::move(listening)),
      reserve_(open_reserve()),
      pause_(loop.context()) {}

bool Acceptor::open() { return loop_.watch(listening_.get(), *this); }

void Acceptor::close() {
  listening_.reset();
  pause_.cancel();
}

// Readiness is told once: so until there is nobody left.
void Acceptor::accept_some() {
  if (!listening_) return;
  for (int accepts = 0; accepts < kAcceptsPerTurn; ++accepts) {
    Took took = accept_one();
    if (took == Took::no_descriptor) took = refuse_one();
    if (took == Took::nobody) return;
    if (took != Took::one) return go_on_later();
  }
  go_on_next_turn();
}

Acceptor::Took Acceptor::accept_one() {
  tcp::endpoint peer;
  Descriptor socket = accept_from(listening_.get(), peer);
  if (!socket) {
    switch (errno) {
      case EAGAIN: return Took::nobody;
      case EMFILE:
      case ENFILE: return Took::no_descriptor;
      case ENOMEM:
      case ENOBUFS: return Took::no_memory;
      default: return Took::one;  // who has left before it was its turn
    }
  }
  // The reserve comes first: while it was given up, another thread may have taken its descriptor.
  if (!reserve_) reserve_ = open_reserve();
  if (reserve_) {
    admit_(std::move(socket), tcp::endpoint(unmapped(peer.address()), peer.port()));
  } else {
    note_refusal();
    socket.reset();
    reserve_ = open_reserve();
  }
  return Took::one;
}

// No descriptor is left: the reserve takes the connection in, so that its peer sees a close and not
// a silence.
Acceptor::Took Acceptor::refuse_one() {
  reserve_.reset();
  tcp::endpoint peer;
  Descriptor refused = accept_from(listening_.get(), peer);
  const bool nobody = !refused && errno == EAGAIN;
  const bool took = static_cast<bool>(refused);
  refused.reset();
  reserve_ = open_reserve();
  if (nobody) return Took::nobody;
  note_refusal();
  return took ? Took::one : Took::no_descriptor;
}

void Acceptor::go_on_next_turn() {
  if (std::exchange(goes_on_, true)) return;
  loop_.post([this] {
    goes_on_ = false;
    accept_some();
  });
}

// Out of descriptors, with none in reserve, or of memory: to try again at once would only spin.
void Acceptor::go_on_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) accept_some();
  });
}

void Acceptor::note_refusal() {
  stats_.connections_refused.add();
  if (!may_log(next_refusal_log_, loop_.turn_time())) return;
  log_event(LogLevel::warn,
            "no descriptors left: connections are refused; raise the limit on open "
            "files, or set --max-connections below it");
}

}  // namespace lockd
