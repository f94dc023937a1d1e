#include "protocol/line/line_framer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {
namespace {

using namespace std::string_view_literals;

using Status = LineFramer::Status;

std::string shown(const RequestLines& lines) {
  return '[' + std::string(lines.command) + "][" + std::string(lines.key) + "][" +
         std::string(lines.argument) + ']';
}

// Reads a stream as a connection does, a few bytes at a time, and writes down what it finds. The
// buffer is a new one for each piece, and not a byte larger than what is in it.
class Reader {
 public:
  void feed(std::string_view piece) {
    std::vector<char> moved(unread_.begin(), unread_.end());
    moved.insert(moved.end(), piece.begin(), piece.end());
    moved.shrink_to_fit();
    unread_.swap(moved);
    while (status_ != Status::line_too_long) {
      const auto framed = framer_.next({unread_.data(), unread_.size()});
      status_ = framed.status;
      if (status_ != Status::complete) break;
      found_.push_back(shown(framed.lines));
      unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(framed.size));
    }
  }

  Status status() const { return status_; }
  const std::vector<std::string>& found() const { return found_; }
  std::size_t left() const { return unread_.size(); }

 private:
  LineFramer framer_;
  std::vector<char> unread_;
  std::vector<std::string> found_;
  Status status_ = Status::incomplete;
};

Reader read_all(std::string_view stream) {
  Reader reader;
  reader.feed(stream);
  return reader;
}

Reader read_in_pieces(std::string_view stream, std::size_t size) {
  Reader reader;
  for (std::size_t at = 0; at < stream.size(); at += size) reader.feed(stream.substr(at, size));
  return reader;
}

TEST(LineFramer, TakesThreeLinesWithoutTheirEnds) {
  const struct {
    const char* what;
    std::string_view stream;
    std::string_view found;
  } cases[] = {
      {"plain", "l\nmy-job\n10 33\n", "[l][my-job][10 33]"},
      {"CRLF", "l\r\nk\r\n10\r\n", "[l][k][10]"},
      {"mixed ends", "l\nk\r\n10\n", "[l][k][10]"},
      {"all trailing CRs", "l\r\r\nk\r\r\r\n10\r\r\r\r\n", "[l][k][10]"},
      {"a CR within stays", "l\r\rx\nk\rk\n\r1\n", "[l\r\rx][k\rk][\r1]"},
      {"a CR before a space stays", "l\nk\n1\r \n", "[l][k][1\r ]"},
      {"empty lines", "\n\n\n", "[][][]"},
      {"lines of CRs", "\r\n\r\r\n\r\n", "[][][]"},
      {"an empty argument", "e\nk\n\n", "[e][k][]"},
      {"nothing is trimmed", " l \n k \n\t1 \n", "[ l ][ k ][\t1 ]"},
      {"nul is a byte like any other", "a\0\n\0\n\0b\n"sv, "[a\0][\0][\0b]"sv},
      {"not UTF-8", "\xff\n\xc0\x80\n\x80\n", "[\xff][\xc0\x80][\x80]"},
  };
  for (const auto& c : cases) {
    const Reader reader = read_all(c.stream);
    EXPECT_EQ(reader.found(), std::vector<std::string>{std::string(c.found)}) << c.what;
    EXPECT_EQ(reader.left(), 0u) << c.what;
  }
}

TEST(LineFramer, ARequestIsIncompleteUntilItsThirdLineFeed) {
  const std::string_view request = "sl\r\npool\r\n5 3 60\r\n";
  for (std::size_t size = 0; size < request.size(); ++size) {
    const Reader reader = read_all(request.substr(0, size));
    EXPECT_EQ(reader.status(), Status::incomplete) << size;
    EXPECT_TRUE(reader.found().empty()) << size;
    EXPECT_EQ(reader.left(), size);
  }
}

TEST(LineFramer, SaysHowMuchARequestTook) {
  LineFramer framer;
  const std::string_view stream = "l\r\nk\n10\r\r\nr\nk\n";
  const auto framed = framer.next(stream);
  ASSERT_EQ(framed.status, Status::complete);
  EXPECT_EQ(framed.size, std::string_view("l\r\nk\n10\r\r\n").size());
  // Views, not copies.
  EXPECT_EQ(framed.lines.command.data(), stream.data());
  EXPECT_EQ(framed.lines.argument.data(), stream.data() + 5);
  EXPECT_EQ(framer.next(stream.substr(framed.size)).status, Status::incomplete);
}

std::string session() {
  return "auth\n_\nsecret\n" + std::string("l\r\nmy job\r\n10 33\r\n") + "\n\n\n" +
         "signal\nnews.eu\n" + std::string(700, 'p') + "\r\n" + "r\nclé-日本\n" +
         std::string(32, 'a') + "\n" + "listen\na.*.>\n a group \n" + "e\nk\n\n" + "ping\n_\n_\n" +
         std::string(256, 'x') + "\n" + std::string(255, 'y') + "\r\n" + std::string(256, 'z') +
         "\n" + "w\nk\n5";
}

TEST(LineFramer, WhereTheStreamIsCutDoesNotMatter) {
  const std::string stream = session();
  const Reader whole = read_all(stream);
  ASSERT_EQ(whole.found().size(), 9u);
  ASSERT_EQ(whole.status(), Status::incomplete);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Reader reader;
    reader.feed(std::string_view(stream).substr(0, cut));
    reader.feed(std::string_view(stream).substr(cut));
    EXPECT_EQ(reader.found(), whole.found()) << cut;
    EXPECT_EQ(reader.left(), whole.left()) << cut;
  }
  for (const std::size_t size : {1u, 2u, 3u, 5u, 7u, 64u, 255u, 256u, 257u, 1'000u}) {
    const Reader reader = read_in_pieces(stream, size);
    EXPECT_EQ(reader.found(), whole.found()) << size;
    EXPECT_EQ(reader.left(), whole.left()) << size;
  }
}

TEST(LineFramer, TakesAsManyRequestsAsThereAre) {
  std::string stream;
  for (int i = 0; i < 10'000; ++i) stream += "l\nk" + std::to_string(i) + "\n0\n";
  LineFramer framer;
  std::string_view unread = stream;
  for (int i = 0; i < 10'000; ++i) {
    const auto framed = framer.next(unread);
    ASSERT_EQ(shown(framed.lines), "[l][k" + std::to_string(i) + "][0]");
    unread.remove_prefix(framed.size);
  }
  EXPECT_EQ(framer.next(unread).status, Status::incomplete);
}

// One line of a request at its limit, the others short.
struct LimitCase {
  const char* what;
  const char* before;  // what stands before the line
  const char* after;   // and what behind its LF
  std::size_t size_max;
};

const LimitCase kLimits[] = {
    {"command", "", "k\n1\n", 256},
    {"key", "l\n", "1\n", 256},
    {"argument", "l\nk\n", "", 256},
    {"key of signal", "signal\n", "p\n", 256},
    {"key of auth", "auth\n", "s\n", 256},
    {"argument of auth", "auth\n_\n", "", 65'536},
    {"argument of signal", "signal\na.b\n", "", 65'536},
    {"argument of signal with CRs", "signal\r\r\na.b\r\n", "", 65'536},
    {"argument of listen", "listen\na.b\n", "", 256},
    {"argument of no command", "Signal\na.b\n", "", 256},
    {"key of client", "client\n", "n\n", 256},
    {"argument of client", "client\na@b:1\n", "", 65'536},
    {"argument of api", "api\nGET /v1/locks\n", "", 65'536},
    {"argument of signal and a space", "signal \na.b\n", "", 256},
    {"argument of the beginning of a command", "signa\na.b\n", "", 256},
    {"argument of the key auth", "l\nauth\n", "", 256},
};

TEST(LineFramer, LinesHaveAnExactLimit) {
  for (const LimitCase& c : kLimits) {
    const std::string fits = c.before + std::string(c.size_max, 'x') + '\n' + c.after;
    EXPECT_EQ(read_all(fits).found().size(), 1u) << c.what;
    const std::string too_long = c.before + std::string(c.size_max + 1, 'x') + '\n' + c.after;
    EXPECT_EQ(read_all(too_long).status(), Status::line_too_long) << c.what;
    EXPECT_TRUE(read_all(too_long).found().empty()) << c.what;
  }
}

TEST(LineFramer, ACarriageReturnCountsTowardsTheLimit) {
  for (const LimitCase& c : kLimits) {
    const std::string fits = c.before + std::string(c.size_max - 1, 'x') + "\r\n" + c.after;
    EXPECT_EQ(read_all(fits).found().size(), 1u) << c.what;
    const std::string only_returns = c.before + std::string(c.size_max, '\r') + "\n" + c.after;
    EXPECT_EQ(read_all(only_returns).found().size(), 1u) << c.what;
    const std::string too_long = c.before + std::string(c.size_max, 'x') + "\r\n" + c.after;
    EXPECT_EQ(read_all(too_long).status(), Status::line_too_long) << c.what;
  }
}

TEST(LineFramer, ALineIsTooLongBeforeItsEndIsThere) {
  for (const LimitCase& c : kLimits) {
    LineFramer framer;
    std::string stream = c.before + std::string(c.size_max, 'x');
    EXPECT_EQ(framer.next(stream).status, Status::incomplete) << c.what;
    stream += 'x';
    EXPECT_EQ(framer.next(stream).status, Status::line_too_long) << c.what;
    stream += "\nping\n_\n_\n";
    EXPECT_EQ(framer.next(stream).status, Status::line_too_long) << c.what << ": it is final";
  }
}

TEST(LineFramer, RequestsBeforeALineThatIsTooLongAreTaken) {
  const std::string stream = "ping\n_\n_\nl\nk\n0\nl\n" + std::string(1 << 20, 'x');
  const Reader whole = read_all(stream);
  EXPECT_EQ(whole.found().size(), 2u);
  EXPECT_EQ(whole.status(), Status::line_too_long);
  const Reader pieces = read_in_pieces(stream.substr(0, 600), 1);
  EXPECT_EQ(pieces.found(), whole.found());
  EXPECT_EQ(pieces.status(), Status::line_too_long);
}

// A client that sends a long line byte by byte must not make each byte cost the whole line. The
// line feed that appears in what has been searched is not seen, because nobody looks there again.
TEST(LineFramer, DoesNotLookTwice) {
  for (const LimitCase& c : kLimits) {
    LineFramer framer;
    std::string stream = c.before + std::string(200, 'x');
    ASSERT_EQ(framer.next(stream).status, Status::incomplete);
    stream[stream.size() - 1] = '\n';
    stream += std::string("y\n") + c.after;
    const auto framed = framer.next(stream);
    ASSERT_EQ(framed.status, Status::complete) << c.what;
    EXPECT_EQ(framed.size, stream.size()) << c.what;
  }
}

}  // namespace
}  // namespace lockd
