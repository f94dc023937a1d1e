#include <utility>

#include "client/acquisition.h"
#include "client/impl.h"
#include "client/request_lines.h"
#include "lockd/client/client.h"

namespace lockd::client {

Place::Place() noexcept = default;
Place::Place(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Place::~Place() = default;
Place::Place(Place&&) noexcept = default;
Place& Place::operator=(Place&&) noexcept = default;

// The end of the connection gives up a place in the queue. It releases a grant, too, unless the
// server was told not to: so a release is sent. Nobody waits for the answer.
Place::Impl::~Impl() {
  if (!grant || connection == nullptr || !connection->is_ready()) return;
  const auto lines = release_lines({.key = terms.key, .token = grant->token, .kind = terms.kind});
  if (lines) connection->ask(*lines);
}

bool Place::is_granted() const noexcept { return impl_ != nullptr && impl_->grant.has_value(); }

Result<HeldLock> Place::wait(Duration wait, std::stop_token stop) {
  if (impl_ == nullptr) return {Outcome::not_enqueued, "the place is used up"};
  if (wait < Duration(0)) return {Outcome::invalid, "a wait is not negative"};
  const std::unique_ptr<Impl> place = std::move(impl_);
  if (!place->grant) {
    const auto lines = await_lines(
        {.key = place->terms.key, .wait = seconds_to_name(wait), .kind = place->terms.kind});
    auto grant = wait_in_queue(*place->connection, *lines, wait, place->lease, stop);
    if (!grant) return Status(std::move(grant));
    place->grant = std::move(*grant);
  }
  return take_over(place->renewer, std::move(place->connection), std::move(place->terms),
                   std::move(*place->grant), std::move(stop));
}

}  // namespace lockd::client
