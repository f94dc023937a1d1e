// The certificate that is shown now, for all workers, and how it is replaced.
//
// Any thread may call anything. Connections that exist keep what they were opened with.
#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "net/tls_channel.h"
#include "net/tls_context.h"
#include "server/settings/options.h"

namespace lockd {

class TlsIdentity {
 public:
  explicit TlsIdentity(const Options& options)
      : files_{options.tls_cert, options.tls_key, options.tls_client_ca} {}

  bool is_used() const { return !files_.certificate.empty(); }

  // Reads the files, for the first time or again. An error line when they cannot be used: then what
  // was shown before is shown still.
  std::string load() EXCLUDES(mutex_);

  // For one new connection; null when TLS is not used. Precondition: load() has succeeded once.
  std::unique_ptr<TlsChannel> open_channel() const EXCLUDES(mutex_);
  // Likewise, to another server of this one's cluster, which uses TLS as this one does.
  std::unique_ptr<TlsChannel> open_channel_to_peer() const EXCLUDES(mutex_);

 private:
  std::shared_ptr<const TlsContext> shown() const EXCLUDES(mutex_);

  const TlsFiles files_;

  mutable Mutex mutex_;
  std::shared_ptr<const TlsContext> shown_ GUARDED_BY(mutex_);
};

}  // namespace lockd
