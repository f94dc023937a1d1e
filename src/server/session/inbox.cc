#include "server/session/inbox.h"

namespace lockd {

void Inbox::post(SessionId to, Message message) {
  bool must_wake = false;
  {
    MutexLock lock(mutex_);
    must_wake = letters_.empty() && !is_ending_turn_;
    letters_.push_back({to, std::move(message)});
  }
  if (must_wake) wake_();
}

void Inbox::post(SignalLetter letter) {
  bool must_wake = false;
  {
    MutexLock lock(mutex_);
    must_wake = signals_.empty() && !is_ending_turn_;
    signals_.push_back(std::move(letter));
  }
  if (must_wake) wake_();
}

void Inbox::begin_turn() {
  MutexLock lock(mutex_);
  is_ending_turn_ = true;
}

std::vector<Inbox::Letter> Inbox::take() {
  MutexLock lock(mutex_);
  return std::exchange(letters_, {});
}

std::vector<Inbox::SignalLetter> Inbox::take_signals() {
  MutexLock lock(mutex_);
  return std::exchange(signals_, {});
}

bool Inbox::end_turn() {
  MutexLock lock(mutex_);
  is_ending_turn_ = false;
  return !letters_.empty() || !signals_.empty();
}

}  // namespace lockd
