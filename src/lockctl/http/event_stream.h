// Server-sent events out of a stream of bytes, however it was cut into pieces. Pure.
//
//   parser.feed(bytes, [&](const StreamEvent& event) { print(event.name, event.data); });
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lockd::cli {

struct StreamEvent {
  std::string name;
  std::string data;
};

class EventStreamParser {
 public:
  // Longer than anything a server of ours says in one event.
  static constexpr std::size_t kEventSizeMax = std::size_t{1} << 20;

  using Sink = std::function<void(const StreamEvent&)>;

  // False, and final, when an event is larger than kEventSizeMax.
  bool feed(std::string_view bytes, const Sink& sink);

 private:
  void take_line(std::string_view line, const Sink& sink);

  std::string unread_;
  StreamEvent event_;
  bool has_data_ = false;
};

}  // namespace lockd::cli
