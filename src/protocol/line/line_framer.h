// Finds requests in a stream of bytes: three lines each, however the stream was cut into pieces.
//
// The bytes stay in the buffer of the caller, which reads the connection. The framer finds the
// lines and remembers how far it has looked, so that a request that arrives byte by byte is
// searched once.
//
//   for (;;) {
//     const auto framed = framer.next(buffer.unread());
//     if (framed.status != LineFramer::Status::complete) break;   // read on, or close
//     execute(framed.lines);
//     buffer.consume(framed.size);
//   }
//
// Not thread-safe: one per connection.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lockd {

// The most bytes before the LF, trailing CRs included. The argument lines of `auth`, `signal`,
// `api` and `client` may be long ones: of the last, the parser says what is too long.
inline constexpr std::size_t kLineSizeMax = 256;
inline constexpr std::size_t kLongLineSizeMax = 65'536;

// One request as it was sent, without the LFs and the CRs before them. Views of the reader's
// buffer.
struct RequestLines {
  std::string_view command;
  std::string_view key;
  std::string_view argument;
};

class LineFramer {
 public:
  enum class Status : unsigned char {
    complete,       // `lines` and `size` are set
    incomplete,     // more bytes are needed
    line_too_long,  // final: where the next request would start is not known
  };

  struct Framed {
    Status status = Status::incomplete;
    RequestLines lines{};
    std::size_t size = 0;  // of the request in the buffer: the next one starts behind
  };

  // `unread` begins where the last complete request ended. While a request is incomplete each call
  // passes all of it again, from its first byte; the bytes may have moved, not changed. A line is
  // too long as soon as that can be known, not when its LF arrives.
  Framed next(std::string_view unread);

 private:
  static constexpr std::size_t kLines = 3;

  std::size_t line_start() const { return line_ == 0 ? 0 : ends_[line_ - 1] + 1; }
  std::size_t line_size_max() const;
  RequestLines lines_of(std::string_view unread) const;

  std::array<std::size_t, kLines> ends_{};  // where the LFs are; the first `line_` are known
  std::size_t line_ = 0;                    // the one that is being looked for the end of
  std::size_t searched_ = 0;                // from the line's start to here there is no LF
  bool long_argument_ = false;              // known once `line_` is past the command
};

}  // namespace lockd
