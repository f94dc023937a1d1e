#include "protocol/line/line_framer.h"

#include <algorithm>
#include <cassert>

namespace lockd {
namespace {

// CRLF ends a line as LF does, and so does CRCRLF, which some terminals and proxies make of it.
std::string_view strip_carriage_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool takes_long_argument(std::string_view command) {
  return command == "signal" || command == "api" || command == "auth" || command == "client";
}

}  // namespace

// One object from here to the caller: to copy what was just written, field by field, would stall.
LineFramer::Framed LineFramer::next(std::string_view unread) {
  Framed framed;
  assert(unread.size() >= searched_);
  while (line_ < kLines) {
    const std::size_t start = line_start();
    const std::size_t size_max = line_size_max();
    // The LF itself may lie one past the longest line. Never further: a line without end is not
    // searched to its end.
    const std::size_t stop = std::min(unread.size(), start + size_max + 1);
    const std::size_t end = unread.substr(0, stop).find('\n', searched_);
    if (end == std::string_view::npos) {
      searched_ = stop;
      if (stop - start > size_max) framed.status = Status::line_too_long;
      return framed;
    }
    ends_[line_++] = end;
    searched_ = end + 1;
    if (line_ == 1) {
      long_argument_ = takes_long_argument(strip_carriage_returns(unread.substr(0, end)));
    }
  }
  framed.status = Status::complete;
  framed.lines = lines_of(unread);
  framed.size = searched_;
  line_ = searched_ = 0;
  long_argument_ = false;
  return framed;
}

std::size_t LineFramer::line_size_max() const {
  return line_ == kLines - 1 && long_argument_ ? kLongLineSizeMax : kLineSizeMax;
}

RequestLines LineFramer::lines_of(std::string_view unread) const {
  const auto line = [&](std::size_t start, std::size_t end) {
    return strip_carriage_returns(unread.substr(start, end - start));
  };
  return {line(0, ends_[0]), line(ends_[0] + 1, ends_[1]), line(ends_[1] + 1, ends_[2])};
}

}  // namespace lockd
