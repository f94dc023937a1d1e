#include "server/session/leader_channel.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockd {
namespace {

// Places beyond these are not taken up again at the next leader.
constexpr std::size_t kEnqueuedMax = 1024;

bool is_push(std::string_view line) {
  return line.starts_with("sig ") || line.starts_with("lost ") || line.starts_with("event ");
}

// It has done nothing, and will not: another leads, or is about to.
bool has_stepped_down(std::string_view line) {
  return line.starts_with("error_not_leader") || line == "error_draining" ||
         line.starts_with(R"(ok 503 {"error":"not_leader")") ||
         line.starts_with(R"(ok 503 {"error":"draining")");
}

std::string place_of(const Question& question) {
  return (question.kind == Kind::lock ? "l" : "s") + question.key;
}

}  // namespace

void LeaderChannel::leave(LeaderMail mail) {
  mail.client = id_;
  mail.generation = generation_;
  mail.reader = &reader_;
  forwarder_.leave(std::move(mail));
}

void LeaderChannel::introduce(const ForwardedClient& client) {
  if (generation_ == 0) generation_ = forwarder_.generation();
  leave({.what = LeaderMail::What::introduce, .text = to_bytes(client)});
}

void LeaderChannel::ask(Question question, Time now) {
  question_ = std::move(question);
  deadline_ = now + question_->wait;
  is_sent_ = generation_ != 0;
  // Where the link is down, what it is told of is that there is somebody who waits for it.
  leave({.what = LeaderMail::What::ask, .text = is_sent_ ? text_of(*question_, now) : ""});
}

// In whole seconds, and not before the last of them is over.
std::string LeaderChannel::text_of(const Question& question, Time now) const {
  std::string text = question.head;
  const Duration left = deadline_ > now ? deadline_ - now : Duration::zero();
  if (!question.waits) {
    text += question.argument;
  } else if (question.command == Command::api) {
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    text.append(question.argument, 0, question.argument.size() - 1);
    if (question.argument.size() > 2) text += ',';
    text += "\"wait_ms\":" + std::to_string(left_ms) + "}";
  } else {
    text += std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count());
    if (!question.argument.empty()) text += ' ' + question.argument;
  }
  return text + '\n';
}

// What its client was told that it has, and the next leader knows nothing of: subscriptions, and
// places in queues. What was granted at once is there by its lease, until the client asks for it.
std::vector<std::string_view> LeaderChannel::standing() const {
  std::vector<std::string_view> requests(subscriptions_.begin(), subscriptions_.end());
  const bool awaits = question_ && question_->command == Command::await_turn;
  const std::string awaited = awaits ? place_of(*question_) : "";
  for (const auto& [key, place] : enqueued_) {
    if (place.is_queued || key == awaited) requests.push_back(place.request);
  }
  return requests;
}

void LeaderChannel::ask_again(Time now) {
  std::string text;
  const std::vector<std::string_view> requests = standing();
  unheard_ = requests.size();
  for (const std::string_view request : requests) text += request;
  if (question_) {
    text += text_of(*question_, now);
    is_sent_ = true;
  }
  if (!text.empty()) leave({.what = LeaderMail::What::ask, .text = std::move(text)});
  if (std::exchange(input_ended_, false)) end_input();
}

void LeaderChannel::take(const LeaderNews& news, Time now, std::string& out) {
  switch (news.what) {
    case LeaderNews::What::bytes: {
      half_line_ += news.text;
      std::size_t begin = 0;
      for (std::size_t end = 0; (end = half_line_.find('\n', begin)) != std::string::npos;) {
        take_line(std::string_view(half_line_).substr(begin, end - begin), out);
        begin = end + 1;
      }
      half_line_.erase(0, begin);
      return;
    }
    case LeaderNews::What::up:
      if (news.generation == generation_) return;
      generation_ = news.generation;
      half_line_.clear();
      return ask_again(now);
    case LeaderNews::What::down:
      generation_ = 0;
      half_line_.clear();
      if (question_ && is_sent_ && !question_->may_repeat) {
        client_.on_no_answer(*std::exchange(question_, {}), out);
      }
      return;
    case LeaderNews::What::absent:
      generation_ = 0;
      if (question_) client_.on_no_leader(*std::exchange(question_, {}), out);
      return;
    case LeaderNews::What::here: return go_on_here(now, out);
    case LeaderNews::What::closed: question_.reset(); return client_.on_closed_by_leader();
  }
}

void LeaderChannel::take_line(std::string_view line, std::string& out) {
  if (is_push(line)) return client_.on_leader_push(line, out);
  if (unheard_ > 0) {
    --unheard_;
    return;
  }
  if (!question_ || has_stepped_down(line)) return;
  const Question question = *std::exchange(question_, {});
  learn(question, line);
  client_.on_leader_answer(question, line, out);
}

// What follows from an answer: what to ask for again, and whether the client may be silent.
void LeaderChannel::learn(const Question& question, std::string_view line) {
  const bool is_ok = line.starts_with("ok");
  const std::string request = question.head + question.argument + "\n";
  switch (question.command) {
    case Command::acquire: owned_ += is_ok ? 1 : 0; return;
    case Command::enqueue:
      if (!line.starts_with("acquired ") && line != "queued") return;
      ++owned_;
      if (enqueued_.size() < kEnqueuedMax) {
        enqueued_[place_of(question)] = {request, line == "queued"};
      }
      return;
    case Command::await_turn:
      enqueued_.erase(place_of(question));
      if (!is_ok && owned_ > 0) --owned_;
      return;
    case Command::release:
      if (!is_ok) return;
      enqueued_.erase(place_of(question));
      if (owned_ > 0) --owned_;
      return;
    case Command::listen:
      if (is_ok) subscriptions_.insert(request);
      return;
    case Command::unlisten: subscriptions_.erase(request.substr(2)); return;  // `listen`, the same
    case Command::api:
      if (question.call == HttpCall::listen && line.starts_with("ok 200 ")) {
        subscriptions_.insert(request);
      }
      return;
    default: return;
  }
}

// What it held there lives by its lease, as after any failover.
void LeaderChannel::go_on_here(Time now, std::string& out) {
  for (const std::string_view request : standing()) client_.prepare_here(request);
  if (!question_) return;
  const Question question = *std::exchange(question_, {});
  client_.execute_here(question, text_of(question, now), out);
}

void LeaderChannel::acknowledge(std::uint64_t bytes) {
  leave({.what = LeaderMail::What::taken, .count = bytes});
}

void LeaderChannel::end_input() {
  if (!std::exchange(input_ended_, true)) leave({.what = LeaderMail::What::end});
}

void LeaderChannel::end(bool keep_holds) {
  leave({.what = keep_holds ? LeaderMail::What::detach : LeaderMail::What::close});
}

}  // namespace lockd
