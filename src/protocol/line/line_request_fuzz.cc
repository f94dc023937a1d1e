// Feeds any bytes to the framer and the parser, and aborts when a promise of theirs is broken.
//
// The first eight bytes of an input say how the rest is cut into pieces.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "protocol/line/line_framer.h"
#include "protocol/line/line_request.h"
#include "protocol/line/line_token.h"

namespace lockd {
namespace {

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// Whether `part` lies within `whole`. An empty view may be anywhere.
bool lies_in(std::string_view part, std::string_view whole) {
  const std::less_equal<> ordered;
  return part.empty() || (ordered(whole.data(), part.data()) &&
                          ordered(part.data() + part.size(), whole.data() + whole.size()));
}

std::string_view view_of(const std::array<char, LineToken::kSize>& digits) {
  return {digits.data(), digits.size()};
}

void check_token(const LineToken& token) {
  const auto digits = token.format();
  const auto parsed = LineToken::parse(view_of(digits));
  require(parsed.has_value() && parsed->fence == token.fence && parsed->secret == token.secret,
          "a formatted token parses back");
}

void check_lines(std::string_view unread, const LineFramer::Framed& framed) {
  const std::string_view request = unread.substr(0, framed.size);
  require(framed.size >= 3 && framed.size <= unread.size(),
          "a request is three lines of the bytes");
  require(request.ends_with('\n'), "a request ends with a line feed");
  const bool is_long = framed.lines.command == "auth" || framed.lines.command == "signal" ||
                       framed.lines.command == "api" || framed.lines.command == "client";
  const std::pair<std::string_view, std::size_t> lines[] = {
      {framed.lines.command, kLineSizeMax},
      {framed.lines.key, kLineSizeMax},
      {framed.lines.argument, is_long ? kLongLineSizeMax : kLineSizeMax},
  };
  for (const auto& [line, size_max] : lines) {
    require(lies_in(line, request), "lines are views of the bytes");
    require(line.size() <= size_max, "no line is too long");
    require(line.find('\n') == std::string_view::npos, "no line feed in a line");
    require(!line.ends_with('\r'), "no trailing carriage return in a line");
  }
}

void check_request(const RequestLines& lines, const LineRequest& request) {
  require(lies_in(request.key, lines.key), "the key is a view of its line");
  require(lies_in(request.text, lines.argument), "the text is a view of the argument");
  require(is_plain_text(request.key), "a key is plain text");
  require(request.wait >= Duration::zero(), "no negative wait");
  require(!request.ttl || *request.ttl > Duration::zero(), "a lease is positive");
  require(request.limit >= 1 && request.limit <= kLimitMax, "a limit is in range");
  require(request.permits >= 1 && request.permits <= request.limit, "permits are within the limit");
  if (request.mode == Mode::shared) {
    require(request.kind == Kind::lock, "only a lock is shared");
    require(lines.argument.find("shared") != std::string_view::npos, "who shares has said so");
  }
  if (request.command == Command::client) {
    require(is_name(request.key), "a client's name is a name");
    require(request.text.size() <= kNoteSizeMax && is_plain_text(request.text), "a note is plain");
  }
  if (request.token) {
    check_token(*request.token);
    require(lines.argument.find(view_of(request.token->format())) != std::string_view::npos,
            "the token is the one that was sent");
  }
}

// What was understood, so that two runs can be compared.
std::string shown(const ParsedRequest& parsed) {
  const LineRequest& r = parsed.request;
  std::string text = std::to_string(static_cast<int>(parsed.violation)) + '\n';
  if (!parsed) return text;
  for (const std::int64_t number :
       {static_cast<std::int64_t>(r.command), static_cast<std::int64_t>(r.kind),
        static_cast<std::int64_t>(r.mode), static_cast<std::int64_t>(r.limit),
        static_cast<std::int64_t>(r.permits), std::int64_t{r.wait.count()},
        std::int64_t{r.ttl.value_or(Duration(-1)).count()}, std::int64_t{r.token.has_value()}}) {
    text += std::to_string(number) + ' ';
  }
  return text.append(r.key).append("\n").append(r.text) += '\n';
}

// Reads the bytes as a connection does, each piece into a buffer of its own that ends where the
// bytes end, so that the sanitizer sees every step too far.
class Reader {
 public:
  void feed(std::string_view piece) {
    if (over_) return;
    append(piece);
    while (!over_) {
      const auto framed = framer_.next(unread());
      over_ = framed.status == LineFramer::Status::line_too_long;
      if (over_) transcript_ += "too long\n";
      if (framed.status != LineFramer::Status::complete) break;
      check_lines(unread(), framed);
      understand(framed.lines);
      consumed_ += framed.size;
    }
  }

  const std::string& transcript() const { return transcript_; }

 private:
  std::string_view unread() const {
    return std::string_view(buffer_.data(), buffer_.size()).substr(consumed_);
  }

  void append(std::string_view piece) {
    std::vector<char> moved;
    moved.reserve(unread().size() + piece.size());
    moved.insert(moved.end(), unread().begin(), unread().end());
    moved.insert(moved.end(), piece.begin(), piece.end());
    buffer_.swap(moved);
    consumed_ = 0;
  }

  void understand(const RequestLines& lines) {
    for (const Phase phase : {Phase::before_auth, Phase::open}) {
      const ParsedRequest parsed = parse_request(lines, phase);
      if (parsed) check_request(lines, parsed.request);
      transcript_ += shown(parsed);
    }
  }

  LineFramer framer_;
  std::vector<char> buffer_;
  std::size_t consumed_ = 0;
  std::string transcript_;
  bool over_ = false;
};

constexpr std::size_t kCuts = 8;

std::string read_in_pieces(std::string_view cuts, std::string_view stream) {
  Reader reader;
  for (std::size_t at = 0, piece = 0; at < stream.size(); ++piece) {
    const auto cut = static_cast<std::size_t>(static_cast<unsigned char>(cuts[piece % kCuts]));
    // Single bytes of a short stream; of a long one not so few that copying it takes for ever.
    const std::size_t size = 1 + cut * cut / 64 + stream.size() / 512;
    reader.feed(stream.substr(at, size));
    at += size;
  }
  return reader.transcript();
}

}  // namespace
}  // namespace lockd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace lockd;
  if (size < kCuts) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view cuts = input.substr(0, kCuts);
  const std::string_view stream = input.substr(kCuts);

  LineToken token;
  std::memcpy(&token.fence, cuts.data(), sizeof token.fence);
  token.secret = ~token.fence;
  check_token(token);

  Reader whole;
  whole.feed(stream);
  require(read_in_pieces(cuts, stream) == whole.transcript(), "where a stream is cut matters not");
  return 0;
}
