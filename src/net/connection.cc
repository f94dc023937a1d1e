#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockd {
namespace {

// How much of what was left unread is offered at once: more than the longest request.
constexpr std::size_t kInputPerTurn = 128 * 1024;

// A buffer that has grown goes back when it is empty.
constexpr std::size_t kKeptCapacity = 1024;

void give_back(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

std::size_t memory_of(const std::string& buffer) {
  return buffer.capacity() > kKeptCapacity ? buffer.capacity() : 0;
}

// A peer whose machine or network is gone says nothing any more, and its locks and places would
// wait for it: the system's own patience is two hours. Here it is given up after 45 s.
constexpr int kSilentSeconds = 20;  // then it is probed
constexpr int kSecondsBetweenProbes = 5;
constexpr int kProbes = 5;
// With something unacknowledged there are no probes: then this counts. It also ends a peer that is
// there but takes nothing, if the write timeout has not done so before.
constexpr int kUnacknowledgedMs = 45'000;

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

void set_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kSecondsBetweenProbes);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

}  // namespace

Connection::Connection(Loop& loop, Descriptor socket, std::unique_ptr<TlsChannel> tls,
                       Handler& handler)
    : loop_(loop),
      socket_(std::move(socket)),
      tls_(std::move(tls)),
      handler_(handler),
      opened_(Clock::now()),
      last_input_(opened_) {
  set_options(socket_.get());
}

void Connection::bear_with_stalled_peer() {
  set_option(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

// With a time of its own for what is unacknowledged the system does not count probes.
void Connection::give_up_after(std::chrono::seconds silence) {
  set_option(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::chrono::milliseconds(silence).count()));
}

void Connection::start() {
  if (!loop_.watch(socket_.get(), *this)) break_off();
}

void Connection::start_connecting() {
  start();
  if (state_ == State::open && tls_ != nullptr) open_received();
}

void Connection::on_ready(unsigned events) {
  if (state_ == State::closed) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  // Who leaves before it has heard anything will not end its handshake: nothing is computed for it.
  const bool has_read = last_input_ != opened_;
  if (hung_up_ && !established() && !has_read) return break_off();
  if ((events & EPOLLIN) != 0 || hung_up_) {
    readable_ = true;
    read();
  }
  if (waiting_to_write_ && (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    waiting_to_write_ = false;
    send(allowed_);
    if (state_ == State::open && !waiting_to_write_) handler_.on_all_sent();
  }
}

bool Connection::wants_input() const {
  if (state_ == State::lingering) return true;
  return state_ == State::open && !held_back_ && unread_size() < unread_max_ &&
         unsent_size() < kUnsentMax;
}

// What comes during a handshake stays with the system until there is time for it.
void Connection::read() {
  if (!can_read()) return;
  established() ? read_now() : loop_.queue(*this);
}

void Connection::do_slow_work() {
  if (can_read()) read_now();
}

// Into memory that all connections share: while it is idle it needs none.
void Connection::read_now() {
  auto& scratch = loop_.scratch();
  const std::size_t room = std::min(scratch.size(), unread_max_ - unread_size());
  const ssize_t size = ::recv(socket_.get(), scratch.data(), room, 0);
  if (size == 0) return end_input();
  if (size < 0) {
    if (errno != EAGAIN && errno != EINTR) return break_off();
    readable_ = errno == EINTR;
    return read_next_turn();
  }
  const std::string_view bytes(scratch.data(), static_cast<std::size_t>(size));
  // A short read took all there was, and what comes next will be told of.
  readable_ = hung_up_ || bytes.size() == room;
  last_input_ = loop_.turn_time();
  receive(bytes);
  read_next_turn();
}

// What is known to be there, so that one connection's plenty does not keep the loop from others.
void Connection::read_next_turn() {
  if (reads_next_turn_ || !can_read()) return;
  reads_next_turn_ = true;
  ++operations_;
  loop_.post([this] {
    reads_next_turn_ = false;
    --operations_;
    read();
  });
}

void Connection::receive(std::string_view bytes) {
  if (tls_ == nullptr) return take(bytes);
  while (!bytes.empty() && state_ != State::closed && !input_ended_) {
    const std::string_view piece = bytes.substr(0, TlsChannel::kPiece);
    bytes.remove_prefix(piece.size());
    tls_->receive(piece);
    open_received();
  }
}

void Connection::open_received() {
  using Progress = TlsChannel::Progress;
  auto& plain = loop_.plain();
  for (Progress progress = Progress::more; progress == Progress::more;) {
    std::size_t size = 0;
    const bool was_established = tls_->established();
    progress = tls_->open(plain, size);
    const bool is_news = !was_established && tls_->established();
    if (is_news && state_ == State::open) handler_.on_established();
    if (size > 0) take({plain.data(), size});
    if (progress == Progress::ended) end_input();
    if (state_ == State::closed) return;
    if (progress == Progress::failed) {
      if (!waiting_to_write_) write_out();  // the alert that says why
      return break_off();
    }
  }
  // What TLS itself has to say, as in the handshake, waits for no turn's end.
  if (!tls_->sealed().empty() && !waiting_to_write_) write_out();
}

void Connection::take(std::string_view bytes) {
  if (state_ == State::lingering) return;
  if (unread_size() > 0) {
    input_.append(bytes);
    return resume_input();
  }
  const std::size_t consumed = handler_.on_input(bytes);
  if (state_ != State::open || consumed == bytes.size()) return;
  input_.assign(bytes.substr(consumed));
  if (consumed > 0) resume_next_turn();
}

void Connection::resume_input() {
  if (state_ != State::open) return;
  // A peer that does not take its replies is given no more.
  const bool is_behind = unsent_size() >= kUnsentMax;
  held_back_ = is_behind && unread_size() > 0;
  if (is_behind) return;
  if (unread_size() > 0) {
    const std::string_view unread = std::string_view(input_).substr(consumed_, kInputPerTurn);
    const std::size_t consumed = handler_.on_input(unread);
    if (state_ != State::open) return;
    consumed_ += consumed;
    if (consumed_ == input_.size()) {
      give_back(input_);
      consumed_ = 0;
    } else if (consumed_ > kInputPerTurn) {
      input_.erase(0, consumed_);  // not at every request: it moves all that is behind
      consumed_ = 0;
    }
    if (consumed > 0 && unread_size() > 0) resume_next_turn();
  }
  read_next_turn();
}

// So that one connection's backlog does not keep the loop from the others. What is left may also be
// half a request, or wait for one that blocks: that is found then.
void Connection::resume_next_turn() {
  if (std::exchange(resuming_, true)) return;
  ++operations_;
  loop_.post([this] {
    resuming_ = false;
    --operations_;
    resume_input();
  });
}

void Connection::end_input() {
  if (std::exchange(input_ended_, true)) return;  // TLS says so before TCP does
  if (state_ == State::open) return handler_.on_end_of_input();
  if (said_goodbye()) close();  // else when all is sent
}

void Connection::break_off() {
  const bool tell = state_ == State::open;
  close();
  if (tell) handler_.on_broken();
}

void Connection::flush() { send(output_.size()); }

bool Connection::uncork() {
  const bool more = output_.size() > marked_;
  send(marked_);
  return more;
}

void Connection::roll_back_output(std::uint64_t from) {
  const std::size_t kept = std::max<std::uint64_t>(from, dropped_ + allowed_) - dropped_;
  if (kept < output_.size()) output_.resize(kept);
  marked_ = std::min(marked_, output_.size());
}

// The first `size` bytes of the output may go.
void Connection::send(std::size_t size) {
  if (state_ == State::closed) return;
  allowed_ = std::max(allowed_, size);
  if (waiting_to_write_) return;  // they follow when the peer takes more
  if (!seal()) return break_off();
  write_out();
}

// What may go becomes what the wire carries. Until TLS is established it stays.
bool Connection::seal() {
  if (tls_ == nullptr || allowed_ == 0 || !tls_->established()) return true;
  const bool sealed = tls_->seal(std::string_view(output_).substr(0, allowed_));
  drop_output(allowed_);
  return sealed;
}

void Connection::drop_output(std::size_t size) {
  output_.erase(0, size);
  dropped_ += size;
  allowed_ -= size;
  marked_ -= std::min(marked_, size);
  if (output_.empty()) give_back(output_);
}

void Connection::write_out() {
  if (wire_size() > sent_) {
    const ssize_t sent =
        ::send(socket_.get(), wire().data() + sent_, wire_size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return break_off();
    if (sent > 0) sent_ += static_cast<std::size_t>(sent);
  }
  if (wire_size() > sent_) return wait_to_write();
  drop_sent();
  if (state_ == State::lingering) return say_goodbye();
  if (held_back_ && unsent_size() < kUnsentMax) {
    held_back_ = false;
    resume_next_turn();
  }
  read_next_turn();
}

void Connection::drop_sent() {
  if (tls_ == nullptr) {
    drop_output(sent_);
  } else if (sent_ == tls_->sealed().size()) {
    give_back(tls_->sealed());
  } else {
    tls_->sealed().erase(0, sent_);
  }
  sent_ = 0;
}

// All is sent: now the end. Input is drained for a while, not for ever.
void Connection::say_goodbye() {
  ::shutdown(socket_.get(), SHUT_WR);
  if (input_ended_) return close();
  if (!said_goodbye()) linger_until_ = Clock::now() + linger_;
  read_next_turn();
}

void Connection::wait_to_write() {
  if (sent_ > kUnsentMax / 2) drop_sent();  // not at every write: it moves all that is behind
  waiting_to_write_ = true;
  stalled_since_ = loop_.turn_time();
}

void Connection::close_gently(std::chrono::milliseconds linger) {
  if (state_ != State::open) return;
  state_ = State::lingering;
  linger_ = linger;
  give_back(input_);
  consumed_ = 0;
  allowed_ = output_.size();
  if (tls_ != nullptr) {
    if (!seal()) return close();
    drop_output(output_.size());  // what could not be sealed never will be
    tls_->end();
  }
  if (!waiting_to_write_) write_out();
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  loop_.unqueue(*this);
  socket_.reset();
  give_back(input_);
  dropped_ += output_.size();
  give_back(output_);
  consumed_ = sent_ = allowed_ = marked_ = 0;
  if (tls_ != nullptr) give_back(tls_->sealed());
}

std::size_t Connection::buffered() const {
  const std::size_t plain = memory_of(input_) + memory_of(output_);
  return tls_ == nullptr ? plain : plain + memory_of(tls_->sealed()) + tls_->unopened();
}

void Connection::check(Clock::time_point now) {
  if (said_goodbye() && now >= linger_until_) close();
}

bool Connection::peer_has_left() const {
  if (state_ != State::open || input_ended_) return true;
  pollfd descriptor{socket_.get(), POLLRDHUP, 0};
  return ::poll(&descriptor, 1, 0) > 0;
}

}  // namespace lockd
