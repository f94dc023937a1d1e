// What gRPC says by itself, such as that a certificate is not accepted: it knows why, where a call
// knows only that no answer came.
#pragma once

#include "journal/journal_error.h"

namespace lockd {

// Its errors go to `log` from now on, each at most once a minute; the rest is dropped. For the
// whole process; `log` is called on any thread.
void take_grpc_log(Log log);

}  // namespace lockd
