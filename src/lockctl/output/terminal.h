// The terminal as a full screen: keys one by one, the alternate screen, and all as it was
// afterwards.
//
// Restored by the destructor, and when the program dies by its own mistake. Other signals are for
// whoever waits: see SignalSource. One at a time.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string_view>

namespace lockd::cli {

struct ScreenSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

class FullScreen {
 public:
  // Throws Failure when standard input and output are no terminal.
  FullScreen();
  ~FullScreen() { leave(); }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Gives the terminal back, and takes it again: for a program that stops in between.
  void leave();
  void enter();

  ScreenSize size() const;
  // All of a frame at once: lines joined by \n, as many as there are rows.
  void show(std::string_view frame) const;
  // The next key that was typed; 0 when there is none.
  char key() const;

 private:
  bool entered_ = false;
};

}  // namespace lockd::cli
