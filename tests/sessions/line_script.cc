#include "sessions/line_script.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "support/line_client.h"

namespace lockd {
namespace {

enum class Way { one_send, bytewise, pipelined };

constexpr std::string_view kWays[] = {"in one send", "a byte at a time", "pipelined"};

// Replaces `$1` to `$9` by the tokens granted so far. False when one has not been granted yet.
bool fill_in(std::string& text, const std::vector<std::string>& tokens) {
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    const auto index = static_cast<std::size_t>(text.at(at + 1) - '1');
    if (index >= tokens.size()) return false;
    text.replace(at, 2, tokens[index]);
  }
  return true;
}

class Player {
 public:
  Player(const Options& options, Way way)
      : server_(options), client_(server_.connect()), way_(way) {}

  void play(std::vector<Exchange> exchanges) {
    if (way_ == Way::pipelined) surround_with_pings(exchanges);
    for (std::size_t next = 0; next < exchanges.size() && !closed_;) {
      const std::size_t first = next;
      std::string bytes;
      // What needs a token that is yet to come cannot be sent together with its grant.
      while (next < exchanges.size() && fill_in(exchanges[next].request, tokens_)) {
        bytes += exchanges[next++].request;
        if (way_ != Way::pipelined) break;
      }
      ASSERT_GT(next, first) << "a token that was never granted";
      // The peer may close while it is being sent to: its answer counts, not how much it took.
      way_ == Way::bytewise ? send_in_pieces(bytes) : client_.send(bytes);
      for (std::size_t i = first; i < next && !closed_; ++i) expect(exchanges[i]);
    }
  }

 private:
  static void surround_with_pings(std::vector<Exchange>& exchanges) {
    const Exchange ping{"ping\n\n\n", "ok"};
    exchanges.insert(exchanges.begin(), ping);
    exchanges.push_back(ping);
  }

  // A byte at a time, but of a long request no more than a thousand pieces.
  bool send_in_pieces(std::string_view bytes) {
    const std::size_t piece = bytes.size() / 1000 + 1;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      if (!client_.send(bytes.substr(at, piece))) return false;
    }
    return true;
  }

  void expect(const Exchange& exchange) {
    std::string expected = exchange.reply;
    closed_ = expected.ends_with('!');
    if (closed_) expected.pop_back();
    const std::string reply = client_.read_line();
    const bool names_token = expected.find('$') != std::string::npos;
    fill_in(expected, tokens_);
    EXPECT_EQ(names_token ? reply : masked(reply), expected) << "to " << exchange.request;
    if (const std::string token = token_of(reply); !token.empty() && !names_token) {
      tokens_.push_back(token);
    }
    if (closed_) {
      EXPECT_EQ(client_.read_line(), kEnd) << "after " << exchange.request;
    }
  }

  LineServer server_;
  LineClient client_;
  const Way way_;
  std::vector<std::string> tokens_;
  bool closed_ = false;
};

}  // namespace

void play_every_way(const Script& script, const Options& options) {
  for (const Way way : {Way::one_send, Way::bytewise, Way::pipelined}) {
    SCOPED_TRACE(std::string(script.name) + ", " +
                 std::string(kWays[static_cast<std::size_t>(way)]));
    Player(options, way).play(script.exchanges);
  }
}

}  // namespace lockd
