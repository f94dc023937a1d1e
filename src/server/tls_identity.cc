#include "server/tls_identity.h"

#include <utility>

namespace lockd {

std::string TlsIdentity::load() {
  if (!is_used()) return {};
  std::string error;
  std::shared_ptr<const TlsContext> loaded = TlsContext::load(files_, error);
  if (loaded == nullptr) return error;
  MutexLock lock(mutex_);
  shown_ = std::move(loaded);
  return {};
}

std::unique_ptr<TlsChannel> TlsIdentity::open_channel() const {
  return is_used() ? shown()->open_channel() : nullptr;
}

std::unique_ptr<TlsChannel> TlsIdentity::open_channel_to_peer() const {
  return is_used() ? shown()->open_channel_to_peer() : nullptr;
}

std::shared_ptr<const TlsContext> TlsIdentity::shown() const {
  MutexLock lock(mutex_);
  return shown_;
}

}  // namespace lockd
