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
  if (!is_used()) return nullptr;
  std::shared_ptr<const TlsContext> shown;
  {
    MutexLock lock(mutex_);
    shown = shown_;
  }
  return shown->open_channel();
}

}  // namespace lockd
