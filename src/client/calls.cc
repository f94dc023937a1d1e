#include "client/calls.h"

#include <algorithm>
#include <utility>

#include "client/deadline.h"
#include "client/stoppable_wait.h"

namespace lockd::client {

Status converse_until(Conversation& conversation, BootClock::time_point deadline,
                      std::stop_token stop, const std::function<bool()>& done) {
  const StoppableWait pause(std::move(stop));
  for (;;) {
    const auto now = BootClock::now();
    conversation.advance(now);
    if (done()) return {};
    if (conversation.is_closed()) return conversation.failure();
    if (pause.stop_requested()) return {Outcome::cancelled};
    if (now >= deadline) return {Outcome::timeout};
    pause.wait(conversation.interest(), std::min(deadline, conversation.deadline()));
  }
}

Result<std::unique_ptr<Conversation>> open_conversation(std::shared_ptr<const Endpoint> endpoint,
                                                        BootClock::time_point deadline,
                                                        std::stop_token stop) {
  if (stop.stop_requested()) return Status{Outcome::cancelled};
  auto addresses = resolve(endpoint->address, deadline, stop);
  if (!addresses) return Status(std::move(addresses));
  auto opened =
      std::make_unique<Conversation>(std::move(endpoint), *addresses, BootClock::now(), deadline);
  // The conversation closes itself at its deadline, and says what it was that took so long.
  Status status =
      converse_until(*opened, kNever, std::move(stop), [&] { return opened->is_ready(); });
  if (!status) return status;
  return opened;
}

Result<Reply> ask(Conversation& conversation, const Question& question, std::stop_token stop) {
  const auto patience =
      later(later(BootClock::now(), question.wait), conversation.endpoint()->options.reply_timeout);
  return ask_until(conversation, question, patience, std::move(stop));
}

Result<Reply> ask_until(Conversation& conversation, const Question& question,
                        BootClock::time_point deadline, std::stop_token stop) {
  const auto cancel = [&] {
    if (!question.farewell.empty() && conversation.is_ready()) conversation.ask(question.farewell);
    conversation.close({Outcome::cancelled});
  };
  if (stop.stop_requested()) cancel();
  if (conversation.is_closed()) return conversation.failure();
  std::size_t earlier = conversation.outstanding();
  Reply reply{.sent_at = BootClock::now()};
  conversation.ask(question.lines, question.size);
  Status status = converse_until(conversation, deadline, std::move(stop), [&] {
    while (auto line = conversation.take_reply()) {
      if (earlier == 0) {
        reply.line = std::move(*line);
        return true;
      }
      --earlier;  // that of a question whose asker is gone
    }
    return false;
  });
  if (status) return reply;
  if (status.outcome == Outcome::timeout) status = {Outcome::no_reply};
  if (status.outcome == Outcome::cancelled) cancel();
  conversation.close(status);
  return status;
}

Status pause_until(BootClock::time_point time, std::stop_token stop) {
  const StoppableWait pause(std::move(stop));
  while (!pause.stop_requested()) {
    if (BootClock::now() >= time) return {};
    pause.wait({.fd = -1}, time);
  }
  return {Outcome::cancelled};
}

}  // namespace lockd::client
