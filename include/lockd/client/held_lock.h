// A lock, a permit of a semaphore, or several of them that were taken in one step, held: a value
// that keeps itself.
//
//   {
//     HeldLock lock = std::move(*client.acquire({.key = "my-job", .lease = 30s}));
//     while (more_to_do() && lock.is_held()) {
//       store.write(next_piece(), lock.fence());   // the store refuses a smaller fence than it saw
//     }
//   }                                              // released
//
// It is renewed in the background, when a third of its lease has passed. When that is no
// longer possible, or the server says that an admin has ended it, its owner is told, once, in every
// way there is: is_held() turns false, the stop token fires, and the callback that was given to
// acquire() is called.
//
// What it is certain of. A lease that was granted or renewed runs at least from the moment at which
// the request was *sent*; expires_at() is that moment plus the lease, by a clock that also runs
// while the process is stopped or the machine asleep. Past it the lock is lost, whatever may still
// arrive: is_held() compares the clock each time it is asked, and never turns true again.
//
// When the connection breaks, the lock is renewed by its token on a new one, of a cluster at the
// next server, again and again until expires_at(). A server that released it with the connection
// answers so, and it is lost at once; so it is when the server refuses us. As long as none has
// confirmed it, from the first reconnection that failed on, it is `suspect`: the server may have
// released it with the connection, and granted it to another client. is_held() is false then, and
// true again once a renewal is confirmed. Several keys are held by a name, and not by a connection:
// no break of one ends them.
//
// A HeldLock may outlive the Client it came from. Any thread may call the const functions while
// another moves nothing; release, move and destroy it like any other value, from one thread at a
// time. After fork() the child must not touch it.
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

class Hold;     // its state, shared with the thread that renews
class Renewer;  // that thread

class HeldLock {
 public:
  HeldLock() noexcept;  // holds nothing
  // Releases it, as release() does, and returns when that is done, or cannot be. Afterwards the
  // callback is not running, and will not be called; unless it is the callback that destroys it.
  ~HeldLock();
  HeldLock(HeldLock&& other) noexcept;
  // What it held before is released.
  HeldLock& operator=(HeldLock&& other) noexcept;

  // Whether the server certainly has not granted it to another client. Costs one reading of the
  // clock. False is final, except while the lock is suspect, which loss() reports.
  bool is_held() const noexcept;
  // When that ends, unless it is renewed; or when it ended. The past when nothing is held.
  BootClock::time_point expires_at() const noexcept;
  // Fires as soon as the background thread knows that it is lost; not for a release. Ask is_held()
  // to know now.
  std::stop_token lost() const noexcept;
  // Why it is not held. How it was lost: `lost`, `unsure`, or `unauthorized` when a server did not
  // let us in again, or denied us the right to renew it. Or `suspect`, which may pass. Nothing
  // while it is held, and after a release.
  std::optional<Status> loss() const;
  // Why the last renewal failed: `ok` once a renewal is confirmed.
  Status last_error() const;

  // Whether its place in the queue was lost on the way to the grant, with a server that went away:
  // others may have gone first.
  bool queued_again() const noexcept;

  // Empty when nothing is held. Of several keys the first.
  const std::string& key() const noexcept;
  Kind kind() const noexcept;
  const std::vector<std::string>& keys() const noexcept;
  std::chrono::seconds lease() const noexcept;
  // The number of this grant, also after its end. See LineGrant::fence for other servers.
  Fence fence() const noexcept;
  // As good as the lock itself: log the fence, not this. Empty once it is not held. Of what
  // acquire_all() took, which a name holds, it is the fence in hex, and opens nothing.
  std::string token() const;

  // Tells the server, and waits for its answer for at most ClientOptions::release_timeout. `ok`;
  // `lost` or `unsure` when it was lost before; or why there is no answer, and then the server
  // releases it when it notices that the connection has ended, at the latest when the lease does.
  // Whatever it is, nothing is held afterwards. A second call answers as the first did.
  Status release() noexcept;

 private:
  friend class Renewer;

  HeldLock(std::shared_ptr<Renewer> renewer, std::shared_ptr<Hold> hold) noexcept;

  std::shared_ptr<Renewer> renewer_;
  std::shared_ptr<Hold> hold_;  // null: holds nothing
};

}  // namespace lockd::client
