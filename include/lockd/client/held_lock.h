// HeldLock: a held lock, semaphore permits, or several keys acquired in one step.
//
//   {
//     HeldLock lock = std::move(*client.acquire({.keys = "my-job", .lease = 30s}));
//     while (more_to_do() && lock.is_held()) {
//       store.write(next_piece(), lock.fence());   // the store rejects smaller fences
//     }
//   }                                              // released
//
// The client renews it in the background when a third of its lease has passed. When the lock is
// lost, because renewal fails or an admin revoked it, the client notifies the owner once: is_held()
// turns false, the stop token fires, and LockRequest::on_lost is called.
//
// Certainty: a lease lasts at least from the time at which its request was *sent*. expires_at() is
// that time plus the lease, by a clock that also runs while the process is paused or the machine is
// suspended. After that the lock is lost for good, even if a reply arrives later: is_held() reads
// the clock on every call and never turns true again.
//
// When the connection breaks, the client renews the lock by its lock token on new connections, in a
// cluster on each server in turn, until expires_at(). If the server reports that it released the
// lock with the connection, or rejects the client, the lock is lost at once. From the first failed
// reconnection until a renewal is confirmed, the lock is `suspect`, because the server may have
// granted it to another client: is_held() is false, and turns true again with the confirmation.
// Several keys are held by a name, so a broken connection does not release them.
//
// A HeldLock may outlive its Client. Const functions are thread-safe. Release, move and destroy a
// HeldLock from one thread at a time, with no concurrent const call. A child after fork() must not
// use it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lockd/client/boot_clock.h"
#include "lockd/client/outcome.h"
#include "lockd/types.h"

namespace lockd::client {

class Hold;     // the state, shared with the renewing thread
class Renewer;  // the renewing thread

class HeldLock {
 public:
  HeldLock() noexcept;  // empty
  // Calls release(). Afterwards the callback is not running and will not be called, unless the
  // callback itself destroys the HeldLock.
  ~HeldLock();
  HeldLock(HeldLock&& other) noexcept;
  // Releases the current lock first.
  HeldLock& operator=(HeldLock&& other) noexcept;

  // Whether the server certainly has not granted the lock to another client. Reads the clock. False
  // is final, except while the lock is suspect, which loss() reports.
  bool is_held() const noexcept;
  // The end of the lease unless it is renewed, or the time at which it ended. The past for an empty
  // HeldLock.
  BootClock::time_point expires_at() const noexcept;
  // Fires when the background thread detects the loss; not on release. is_held() may be false
  // earlier.
  std::stop_token lost() const noexcept;
  // The cause of the loss: `lost`, `unsure`, or `unauthorized` if a server rejected the client or
  // denied it the renewal. Or `suspect`, which may pass. None while held and after a release.
  std::optional<Status> loss() const;
  // The error of the last renewal; `ok` once a renewal is confirmed.
  Status last_error() const;

  // Whether the place in the queue was lost with a failed server before the grant, so that later
  // requests may have been granted first.
  bool queued_again() const noexcept;

  // The first of several keys. Empty for an empty HeldLock.
  const std::string& key() const noexcept;
  Kind kind() const noexcept;
  const std::vector<std::string>& keys() const noexcept;
  std::chrono::seconds lease() const noexcept;
  // The fence of the grant, also after its end. See LineGrant::fence for other servers.
  Fence fence() const noexcept;
  // The lock token authorizes renewals and releases, so log the fence instead. Empty once not held.
  // For several keys it is the fence in hex and authorizes nothing.
  std::string token() const;

  // Sends the release and waits for the answer for at most ClientOptions::release_timeout. Returns
  // `ok`; `lost` or `unsure` if the lock was lost before; or an error, in which case the server
  // releases the lock with the connection or at the end of the lease. Nothing is held afterwards. A
  // second call returns the same.
  Status release() noexcept;

 private:
  friend class Renewer;

  HeldLock(std::shared_ptr<Renewer> renewer, std::shared_ptr<Hold> hold) noexcept;

  std::shared_ptr<Renewer> renewer_;
  std::shared_ptr<Hold> hold_;  // null: empty
};

}  // namespace lockd::client
