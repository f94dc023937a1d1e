#include "server/acceptor.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "server/log.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAcceptPause = 100ms;
// Not all: the other loops accept too.
constexpr int kAcceptsAtOnce = 16;
constexpr auto kRepeatedLogInterval = 60s;

// A descriptor that needs nothing but itself; -1 when there is none left.
int open_reserve() { return ::eventfd(0, EFD_CLOEXEC); }

}  // namespace

Acceptor::Acceptor(Loop& loop, const ListeningSocket& listening, WorkerStats& stats, Admit admit)
    : loop_(loop),
      stats_(stats),
      admit_(std::move(admit)),
      listening_(loop.context()),
      pause_(loop.context()),
      reserve_(open_reserve()) {
  listening_.assign(listening.ipv6 ? tcp::v6() : tcp::v4(),
                    ::fcntl(listening.descriptor, F_DUPFD_CLOEXEC, 0));
  listening_.non_blocking(true);
}

Acceptor::~Acceptor() {
  if (reserve_ >= 0) ::close(reserve_);
}

void Acceptor::close() {
  error_code ignored;
  listening_.close(ignored);
  pause_.cancel();
}

void Acceptor::accept() {
  listening_.async_accept(loop_.context().get_executor(),
                          [this](const error_code& error, Connection::Socket socket) {
                            on_accept(error, std::move(socket));
                          });
}

void Acceptor::on_accept(const error_code& error, Connection::Socket socket) {
  if (!listening_.is_open()) return;
  if (!error) {
    take(std::move(socket));
    take_more();
    return accept();
  }
  if (error == boost::asio::error::connection_aborted) return accept();
  if (error == boost::asio::error::no_descriptors || error.value() == ENFILE) refuse_politely();
  // Out of descriptors or memory: to try again at once would only spin.
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const error_code& cancelled) {
    if (!cancelled) accept();
  });
}

// Who else has connected. One at a time they would wait for as many turns of a busy loop.
void Acceptor::take_more() {
  for (int more = 1; more < kAcceptsAtOnce; ++more) {
    Connection::Socket socket(loop_.context());
    error_code nobody;  // a real error comes again with the next accept
    listening_.accept(socket, nobody);
    if (nobody) return;
    take(std::move(socket));
  }
}

void Acceptor::take(Connection::Socket socket) {
  // The reserve comes first: while it was given up, another loop may have taken its descriptor.
  if (reserve_ < 0) reserve_ = open_reserve();
  if (reserve_ >= 0) {
    admit_(std::move(socket));
  } else {
    give_up(std::move(socket));
  }
}

// No descriptor is left: the reserve takes the connection in, so that its peer sees a close and not
// a silence.
void Acceptor::refuse_politely() {
  note_refusal();
  if (reserve_ >= 0) ::close(reserve_);
  const int refused = ::accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
  if (refused >= 0) ::close(refused);
  reserve_ = open_reserve();
}

// Instead of admitting it: its descriptor is needed.
void Acceptor::give_up(Connection::Socket socket) {
  note_refusal();
  error_code ignored;
  socket.close(ignored);
  reserve_ = open_reserve();
}

void Acceptor::note_refusal() {
  stats_.connections_refused.add();
  if (!may_log(next_refusal_log_, loop_.turn_time())) return;
  log_event(LogLevel::warn,
            "no descriptors left: connections are refused; raise the limit on open "
            "files, or set --max-connections below it");
}

bool may_log(Connection::Clock::time_point& next, Connection::Clock::time_point now) {
  if (now < next) return false;
  next = now + kRepeatedLogInterval;
  return true;
}

}  // namespace lockd
