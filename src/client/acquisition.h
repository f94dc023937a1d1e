// From a grant to a HeldLock: what Client::acquire() and Place::wait() have in common.
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>

#include "client/hold.h"
#include "client/line_connection.h"
#include "client/renewer.h"
#include "lockd/client/client.h"
#include "lockd/client/held_lock.h"

namespace lockd::client {

// The whole seconds to name on the wire for a wait: never less.
std::chrono::seconds seconds_to_name(Duration wait);

// Waits in the queue by sending `lines`, which name seconds_to_name(wait). A wait that is no whole
// number of seconds is ended here, by leaving.
Result<LineGrant> wait_in_queue(LineConnection& connection, std::string_view lines, Duration wait,
                                Lease asked, std::stop_token stop);

// Hands a grant to the renewer. One that is due for renewal already is renewed first, so that
// nobody is given what ran out while the reply was under way or this process was stopped:
// `lease_expired`.
Result<HeldLock> take_over(const std::shared_ptr<Renewer>& renewer,
                           std::unique_ptr<LineConnection> connection, Hold::Terms terms,
                           LineGrant grant, std::stop_token stop);

}  // namespace lockd::client
