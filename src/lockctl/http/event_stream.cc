#include "lockctl/http/event_stream.h"

namespace lockd::cli {

bool EventStreamParser::feed(std::string_view bytes, const Sink& sink) {
  unread_ += bytes;
  std::size_t start = 0;
  for (std::size_t end; (end = unread_.find('\n', start)) != std::string::npos; start = end + 1) {
    std::string_view line = std::string_view(unread_).substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take_line(line, sink);
  }
  unread_.erase(0, start);
  return unread_.size() + event_.data.size() <= kEventSizeMax;
}

void EventStreamParser::take_line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    if (has_data_) sink(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
  // An empty field is a comment, which keeps the connection alive; others are none of ours.
}

}  // namespace lockd::cli
