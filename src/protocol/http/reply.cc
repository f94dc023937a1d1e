#include "protocol/http/reply.h"

#include <array>
#include <charconv>

namespace lockd {
namespace {

void append_size(std::string& out, std::size_t number, int base = 10) {
  std::array<char, 20> digits;
  out.append(digits.data(),
             std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr);
}

// All but the empty line at the end.
void write_head(std::string& out, const ReplyHead& head) {
  out += "HTTP/1.1 ";
  append_size(out, static_cast<std::size_t>(head.status));
  out += ' ';
  out += reason_phrase(head.status);
  out += "\r\n";
  if (!head.content_type.empty()) {
    out += "Content-Type: ";
    out += head.content_type;
    out += "\r\n";
  }
  out += head.fields;
  if (!head.keep_alive) {
    out += "Connection: close\r\n";
  } else if (head.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
}

class Chunk {
 public:
  Chunk(std::string& out, bool chunked, std::size_t size) : out_(out), chunked_(chunked) {
    if (!chunked_) return;
    append_size(out_, size, 16);
    out_ += "\r\n";
  }
  ~Chunk() {
    if (chunked_) out_ += "\r\n";
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

 private:
  std::string& out_;
  const bool chunked_;
};

}  // namespace

void write_reply(std::string& out, const ReplyHead& head, std::string_view body, bool with_body) {
  write_head(out, head);
  if (head.status != 204) {  // which has no body, and may not even say so
    out += "Content-Length: ";
    append_size(out, body.size());
    out += "\r\n";
  }
  out += "\r\n";
  if (with_body) out += body;
}

void write_continue(std::string& out) { out += "HTTP/1.1 100 Continue\r\n\r\n"; }

void write_stream_head(std::string& out, const ReplyHead& head) {
  write_head(out, head);
  out += head.http_1_0 ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
}

// An empty chunk would be the end.
void write_stream_piece(std::string& out, bool chunked, std::string_view piece) {
  if (piece.empty()) return;
  const Chunk chunk(out, chunked, piece.size());
  out += piece;
}

void write_stream_event(std::string& out, bool chunked, std::string_view event,
                        std::string_view data) {
  constexpr std::string_view kEvent = "event: ";
  constexpr std::string_view kData = "\ndata: ";
  constexpr std::string_view kEnd = "\n\n";
  const Chunk chunk(out, chunked,
                    kEvent.size() + event.size() + kData.size() + data.size() + kEnd.size());
  out += kEvent;
  out += event;
  out += kData;
  out += data;
  out += kEnd;
}

void write_stream_ping(std::string& out, bool chunked) {
  constexpr std::string_view kPing = ": ping\n\n";
  const Chunk chunk(out, chunked, kPing.size());
  out += kPing;
}

void write_stream_end(std::string& out, bool chunked) {
  if (chunked) out += "0\r\n\r\n";
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Error";
  }
}

}  // namespace lockd
