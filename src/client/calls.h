// Blocking calls over a Conversation: each ends by an answer, by its deadline, or by a stop token.
//
// A call that ends without an answer closes the conversation: the reply may still come, and nobody
// could tell it from that to the next request.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/conversation.h"
#include "client/endpoint.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

// Looks the server up, connects, and waits until it is ready, which it must be by `deadline`.
Result<std::unique_ptr<Conversation>> open_conversation(std::shared_ptr<const Endpoint> endpoint,
                                                        BootClock::time_point deadline,
                                                        std::stop_token stop);

struct Question {
  std::string_view lines;
  Duration wait{};  // how long the server may take before it answers, as it was asked to
  Conversation::ReplySize size = Conversation::ReplySize::short_line;
  // What to say when the stop token fires, before the conversation is closed.
  std::string_view farewell{};
};

struct Reply {
  std::string line{};
  BootClock::time_point sent_at{};  // just before the first byte of the question left
};

// `ok` is any reply, whatever it says. It may take the question's wait, and then the endpoint's
// reply_timeout.
Result<Reply> ask(Conversation& conversation, const Question& question, std::stop_token stop);
// The same, until a time of the caller's.
Result<Reply> ask_until(Conversation& conversation, const Question& question,
                        BootClock::time_point deadline, std::stop_token stop);

// Waits for what `done` looks for, after each piece of news. The outcome is ok when it has come,
// `timeout` at the deadline, `cancelled`, or the failure of a conversation that has ended; the
// conversation is left as it is.
Status converse_until(Conversation& conversation, BootClock::time_point deadline,
                      std::stop_token stop, const std::function<bool()>& done);

// Waits, and does nothing: `ok`, or `cancelled`.
Status pause_until(BootClock::time_point time, std::stop_token stop);

}  // namespace lockd::client
