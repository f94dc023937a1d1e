#include "client/endpoint.h"

#include <netdb.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file_text.h"
#include "client/identity.h"
#include "client/request_lines.h"

namespace lockd::client {
namespace {

// Blocks, for a name, for as long as the system's resolver likes.
Result<SocketAddresses> look_up(const Address& address, int flags) {
  const addrinfo hints{.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return {Outcome::unreachable, "cannot look up " + address.host + ": " + ::gai_strerror(error)};
  }
  SocketAddresses all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& last = all.emplace_back();
    last.size = one->ai_addrlen;
    std::memcpy(&last.storage, one->ai_addr, one->ai_addrlen);
  }
  ::freeaddrinfo(found);
  return all;
}

// The first line that is not blank: a server's own file may hold two auth tokens.
Result<std::string> first_line_of(const std::string& path) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const FileText file = read_regular_file(path);
  std::string_view text = file.text;
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  text = text.substr(0, text.find('\n'));
  if (!text.empty()) return std::string(text.substr(0, text.find_last_not_of(kSpaces) + 1));
  return {Outcome::invalid, "no auth token can be read from " + path + ": " +
                                (file.error.empty() ? "the file is empty" : file.error)};
}

// Where a request to the resolver is answered, whoever still waits for it.
struct Inquiry {
  std::mutex mutex;
  std::condition_variable_any answered;
  std::optional<Result<SocketAddresses>> answer;
};

}  // namespace

Result<std::shared_ptr<const Endpoint>> Endpoint::make(const Address& address,
                                                       const ConnectOptions& options) {
  if (options.connect_timeout < Duration(0) || options.reply_timeout < Duration(0)) {
    return {Outcome::invalid, "a timeout is not negative"};
  }
  const auto made = std::make_shared<Endpoint>();
  made->address = address;
  made->options = options;
  if (auto handshake = made->handshake(); !handshake) return Status(std::move(handshake));
  if (!options.name || !options.name->empty()) {
    auto introduction = client_lines(options.name ? *options.name : default_name(),
                                     options.note ? *options.note : default_note());
    if (!introduction) return Status(std::move(introduction));
    made->introduction = std::move(*introduction);
  }
  if (options.tls) {
    auto tls = TlsClient::load(*options.tls);
    if (!tls) return Status(std::move(tls));
    made->tls = std::move(*tls);
  }
  return std::shared_ptr<const Endpoint>(made);
}

Result<std::string> Endpoint::handshake() const {
  if (!options.auth_token_file.empty()) {
    auto token = first_line_of(options.auth_token_file);
    return token ? auth_lines(*token) : token;
  }
  return options.auth_token.empty() ? Result(std::string()) : auth_lines(options.auth_token);
}

Result<SocketAddresses> resolve(const Address& address, BootClock::time_point until,
                                std::stop_token stop) {
  const auto inquiry = std::make_shared<Inquiry>();
  resolve_in_background(address, [inquiry](Result<SocketAddresses> answer) {
    const std::lock_guard lock(inquiry->mutex);
    inquiry->answer = std::move(answer);
    inquiry->answered.notify_one();
  });
  std::unique_lock lock(inquiry->mutex);
  const auto is_answered = [&] { return inquiry->answer.has_value(); };
  // The condition variable has a clock of its own, and adds to it without looking.
  const Duration patience = std::min<Duration>(until - BootClock::now(), std::chrono::hours(24));
  if (inquiry->answered.wait_for(lock, stop, patience, is_answered)) {
    return std::move(*inquiry->answer);
  }
  if (stop.stop_requested()) return Status{Outcome::cancelled};
  return {Outcome::unreachable, "cannot look up " + address.host + " in time"};
}

void resolve_in_background(const Address& address,
                           std::function<void(Result<SocketAddresses>)> take) {
  if (auto numeric = look_up(address, AI_NUMERICHOST)) return take(std::move(numeric));
  try {
    std::thread([address, take] { take(look_up(address, AI_ADDRCONFIG)); }).detach();
  } catch (const std::system_error& no_thread) {
    take({Outcome::unreachable, "cannot look up " + address.host + ": " + no_thread.what()});
  }
}

}  // namespace lockd::client
