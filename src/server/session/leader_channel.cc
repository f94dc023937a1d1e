#include "server/session/leader_channel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

// Places beyond these are not taken up again at the next leader, and holds not told apart.
constexpr std::size_t kRememberedMax = 1024;

bool is_push(std::string_view line) {
  return line.starts_with("sig ") || line.starts_with("lost ") || line.starts_with("event ");
}

// It has done nothing, and will not: another leads, or is about to.
bool has_stepped_down(std::string_view line) {
  return line.starts_with("error_not_leader") || line == "error_draining" ||
         line.starts_with(R"(ok 503 {"error":"not_leader")") ||
         line.starts_with(R"(ok 503 {"error":"draining")");
}

// The first three, as far as there are so many.
std::array<std::string, 3> words_of(std::string_view line) {
  std::array<std::string, 3> words;
  for (std::string& word : words) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
  }
  return words;
}

// Of a lease, as the leader says it.
Duration seconds_in(const std::string& word) {
  constexpr std::uint64_t kMax = 9'223'372'036;
  return std::chrono::seconds(parse_whole(word, 0, kMax).value_or(0));
}

std::string place_of(const LeaderRequest& request) {
  return (request.kind == Kind::lock ? "l" : "s") + request.key;
}

}  // namespace

void LeaderChannel::leave(LeaderMail mail) {
  mail.client = id_;
  mail.generation = generation_;
  mail.reader = &reader_;
  forwarder_.leave(std::move(mail));
}

void LeaderChannel::introduce(const ForwardedClient& client) { introduction_ = to_bytes(client); }

void LeaderChannel::say_who() {
  if (introduction_.empty()) return;
  leave({.what = LeaderMail::What::introduce, .text = std::exchange(introduction_, {})});
}

void LeaderChannel::ask(LeaderRequest request, Time now) {
  request_ = std::move(request);
  deadline_ = now + request_->wait;
  is_sent_ = generation_ != 0;
  say_who();
  // Where the link is down, what it is told of is that there is somebody who waits for it.
  leave({.what = LeaderMail::What::ask, .text = is_sent_ ? text_of(*request_, now) : ""});
}

// In whole seconds, and not before the last of them is over.
std::string LeaderChannel::text_of(const LeaderRequest& request, Time now) const {
  std::string text = request.head;
  const Duration left = deadline_ > now ? deadline_ - now : Duration::zero();
  if (!request.waits) {
    text += request.argument;
  } else if (request.command == Command::api) {
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    text.append(request.argument, 0, request.argument.size() - 1);
    if (request.argument.size() > 2) text += ',';
    text += "\"wait_ms\":" + std::to_string(left_ms) + "}";
  } else {
    text += std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count());
    if (!request.argument.empty()) text += ' ' + request.argument;
  }
  return text + '\n';
}

// What its client was told that it has, and the next leader knows nothing of: subscriptions, and
// places in queues. What was granted at once is there by its lease, until the client asks for it.
std::vector<std::string_view> LeaderChannel::standing() const {
  std::vector<std::string_view> requests(subscriptions_.begin(), subscriptions_.end());
  const bool awaits = request_ && request_->command == Command::await_turn;
  const std::string awaited = awaits ? place_of(*request_) : "";
  for (const auto& [key, place] : enqueued_) {
    if (place.token.empty() || key == awaited) requests.push_back(place.request);
  }
  return requests;
}

void LeaderChannel::ask_again(Time now) {
  std::string text;
  const std::vector<std::string_view> requests = standing();
  unheard_ = requests.size();
  unheard_subscriptions_ = subscriptions_.size();
  for (const std::string_view request : requests) text += request;
  if (request_) {
    text += text_of(*request_, now);
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
        take_line(std::string_view(half_line_).substr(begin, end - begin), now, out);
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
      if (request_ && is_sent_ && !request_->may_repeat) {
        client_.on_no_answer(*std::exchange(request_, {}), out);
      }
      return;
    case LeaderNews::What::absent:
      generation_ = 0;
      if (request_) client_.on_no_leader(*std::exchange(request_, {}), out);
      return;
    case LeaderNews::What::here: return go_on_here(now, out);
    case LeaderNews::What::closed: request_.reset(); return client_.on_closed_by_leader();
  }
}

void LeaderChannel::take_line(std::string_view line, Time now, std::string& out) {
  if (is_push(line)) {
    if (line.starts_with("lost ")) held_.erase(words_of(line)[1]);
    return client_.on_leader_push(line, out);
  }
  if (unheard_ > 0) return take_unheard(line);
  if (!request_ || has_stepped_down(line)) return;
  const LeaderRequest request = *std::exchange(request_, {});
  learn(request, line, now);
  client_.on_leader_answer(request, line, out);
}

// A client that the next leader does not let listen would go on waiting for what never comes.
void LeaderChannel::take_unheard(std::string_view line) {
  --unheard_;
  if (unheard_subscriptions_ == 0) return;
  --unheard_subscriptions_;
  const bool listens = line == "ok" || line.starts_with("ok 200 ");
  if (listens || has_stepped_down(line)) return;
  request_.reset();
  client_.on_closed_by_leader();
}

// What follows from an answer: what to ask for again, and whether the client may be silent.
void LeaderChannel::learn(const LeaderRequest& question, std::string_view line, Time now) {
  const bool is_ok = line.starts_with("ok");
  const std::string request = question.head + question.argument + "\n";
  const auto [status, first, second] = words_of(line);
  switch (question.command) {
    case Command::acquire:
      if (is_ok) learn_hold(first, now + seconds_in(second));
      return;
    case Command::enqueue:
      if (status == "acquired") learn_hold(first, now + seconds_in(second));
      if (status == "acquired" || status == "queued") learn_place(question, first);
      return;
    case Command::await_turn:
      if (const auto place = enqueued_.extract(place_of(question)))
        held_.erase(place.mapped().token);
      if (is_ok) learn_hold(first, now + seconds_in(second));
      return;
    case Command::renew:
      if (is_ok) learn_renewal(words_of(question.argument)[0], now + seconds_in(first), now);
      return;
    case Command::release:
      if (is_ok) learn_end(question, words_of(question.argument)[0]);
      return;
    case Command::listen:
      if (is_ok) subscriptions_.insert(request);
      return;
    case Command::unlisten: subscriptions_.erase(request.substr(2)); return;  // `listen`, the same
    case Command::api:
      if (is_stream(question.call) && line.starts_with("ok 200 ")) {
        subscriptions_.insert(request);
      }
      return;
    default: return;
  }
}

// What ends by itself, or is released by others, is not told of here: so there may be more of them
// than there are holds.
void LeaderChannel::learn_hold(const std::string& token, Time until) {
  if (held_.size() < kRememberedMax || held_.contains(token)) {
    held_[token] = until;
  } else {
    others_held_until_ = std::max(others_held_until_, until);
  }
}

void LeaderChannel::learn_renewal(const std::string& token, Time until, Time now) {
  const auto found = held_.find(token);
  if (found != held_.end()) {
    found->second = until;
  } else if (others_held_until_ > now) {  // it may be one of those
    others_held_until_ = std::max(others_held_until_, until);
  }
}

void LeaderChannel::learn_place(const LeaderRequest& question, const std::string& token) {
  const std::string place = place_of(question);
  if (enqueued_.size() < kRememberedMax || enqueued_.contains(place)) {
    enqueued_[place] = {.request = question.head + question.argument + '\n', .token = token};
  } else {
    has_more_places_ = true;
  }
}

// Whoever may release by token may do so on any connection: of others nothing is known here.
void LeaderChannel::learn_end(const LeaderRequest& question, const std::string& token) {
  held_.erase(token);
  const auto place = enqueued_.find(place_of(question));
  if (place != enqueued_.end() && place->second.token == token) enqueued_.erase(place);
}

bool LeaderChannel::has_state(Time now) {
  std::erase_if(held_, [&](const auto& held) { return held.second <= now; });
  const auto is_queued = [](const auto& place) { return place.second.token.empty(); };
  return !held_.empty() || others_held_until_ > now || has_more_places_ ||
         std::any_of(enqueued_.begin(), enqueued_.end(), is_queued);
}

// What it held there lives by its lease, as after any failover.
void LeaderChannel::go_on_here(Time now, std::string& out) {
  for (const std::string_view request : standing()) client_.prepare_here(request);
  if (!request_) return;
  const LeaderRequest request = *std::exchange(request_, {});
  client_.execute_here(request, text_of(request, now), out);
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
