// What the server says over HTTP: whole replies, and streams of server-sent events.
//
// Every function appends to the connection's output. Pure; safe from any thread, each with its own
// output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockd {

inline constexpr std::string_view kJsonType = "application/json";

struct ReplyHead {
  int status = 200;
  std::string_view content_type = kJsonType;
  std::string_view fields{};  // further header fields, each with its CR LF
  bool keep_alive = true;
  bool http_1_0 = false;
};

// `Content-Length` is that of `body`; a reply to HEAD has the length and not the body.
void write_reply(std::string& out, const ReplyHead& head, std::string_view body,
                 bool with_body = true);
// Leave to send the body.
void write_continue(std::string& out);

// A reply whose length is not known yet: events, or pieces of a body, follow. HTTP/1.1 sends them
// in chunks; in HTTP/1.0 the end of the connection ends the reply.
void write_stream_head(std::string& out, const ReplyHead& head);
void write_stream_piece(std::string& out, bool chunked, std::string_view piece);
// `data` has no line ends.
void write_stream_event(std::string& out, bool chunked, std::string_view event,
                        std::string_view data);
// A comment line, which shows the reader that the server is alive.
void write_stream_ping(std::string& out, bool chunked);
void write_stream_end(std::string& out, bool chunked);

// "Not Found".
std::string_view reason_phrase(int status);

}  // namespace lockd
