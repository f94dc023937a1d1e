#include "lockctl/output/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <string>

#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

// The alternate screen, without a cursor, and lines cut instead of wrapped; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

// What the terminal was like; for the handler of a crash, too.
termios original;

void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void restore() {
  write_all(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &original);
}

// Nothing but what a handler may call.
void restore_and_die(int number) {
  restore();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

FullScreen::FullScreen() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1 ||
      ::tcgetattr(STDIN_FILENO, &original) != 0) {
    throw Failure(kExitUsage, "top needs a terminal; see lockctl list and lockctl stats");
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    ::signal(number, restore_and_die);
  }
  enter();
}

void FullScreen::leave() {
  if (!entered_) return;
  entered_ = false;
  restore();
}

void FullScreen::enter() {
  if (entered_) return;
  entered_ = true;
  termios raw = original;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ^C and ^Z stay signals
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_all(kEnter);
}

ScreenSize FullScreen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

void FullScreen::show(std::string_view frame) const {
  // A line is erased before it is written: behind one that fills its row the cursor still stands on
  // the last character, which would go with the rest.
  std::string out = "\x1b[H\x1b[K";
  for (const char c : frame) out += c == '\n' ? std::string("\r\n\x1b[K") : std::string(1, c);
  write_all(out);
}

char FullScreen::key() const {
  char typed = 0;
  return ::read(STDIN_FILENO, &typed, 1) == 1 ? typed : '\0';
}

}  // namespace lockd::cli
