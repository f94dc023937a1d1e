#include "server/forward/forwarder.h"

#include <utility>

#include "base/secret.h"

namespace lockd {

Forwarder::Forwarder(const Options& options)
    : secret_(options.cluster_secret),
      node_(options.node_id),
      forwards_(options.forward),
      incarnation_(TokenSource().next()) {}

void Forwarder::leave(LeaderMail mail) {
  const bool asks = mail.what == LeaderMail::What::ask && !mail.text.empty();
  if (asks) asked_.fetch_add(1, std::memory_order_relaxed);
  std::function<void()> wake;
  {
    MutexLock lock(mutex_);
    if (mail_.empty()) wake = wake_;
    mail_.push_back(std::move(mail));
  }
  if (wake) wake();
}

void Forwarder::attach(std::function<void()> wake) {
  MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

std::vector<LeaderMail> Forwarder::take_mail() {
  MutexLock lock(mutex_);
  return std::exchange(mail_, {});
}

SessionId Forwarder::link_of(const std::string& node) {
  MutexLock lock(mutex_);
  const auto found = links_.find(node);
  return found == links_.end() ? 0 : found->second;
}

void Forwarder::enter_link(const std::string& node, SessionId link) {
  MutexLock lock(mutex_);
  links_[node] = link;
}

void Forwarder::leave_link(const std::string& node, SessionId link) {
  MutexLock lock(mutex_);
  const auto found = links_.find(node);
  if (found != links_.end() && found->second == link) links_.erase(found);
}

}  // namespace lockd
