// A history as a file: one JSON object per line, in the order of calls.
//
//   {"f":"server","srv":"p","auto_release":true}
//   {"i":17,"proc":3,"f":"acquire","key":"p.hot-1","kind":"lock","limit":1,"ttl":2,"timeout":30,
//    "call":123,"ret":456,"res":"ok","fence":77,"via":"tcp","conn":9,"srv":"p","life":2}
//   {"f":"restart","srv":"p","life":3,"call":123,"ret":456}
//   {"f":"failover","srv":"c","life":1741,"call":123,"ret":456}
//
// A request for several keys in one step is a line for each, with `keys`, how many those are, and
// `rid`, `call` and `srv` in common.
// A client that renews by itself notes what it believed instead: `believe`, with the fence, of a
// lock that it took to be held from `call` to `ret`, and had asked for with that `ttl`. Of a
// cluster, which is one server here, `life` is the epoch of the leader that answered (0: it is not
// known); `forwarded` is what a server that followed has passed on. Objects are flat. `res` is ok,
// queued, timeout, error:<code> or info; of info there is no `ret`, for its effect may come at any
// time, but `gave_up`, when the client stopped waiting. An unknown `f` is a fault of that name.
#pragma once

#include <cstdint>
#include <string>

#include "histories/operation.h"

namespace lockd::histories {

// Throws std::runtime_error that names the file and the line.
History read_history(const std::string& path);
// The same of text; `name` is for errors.
History parse_history(std::string_view text, const std::string& name);

// Sorts the operations by their calls, numbers them, and writes all. Throws std::runtime_error.
void write_history(History& history, const std::string& path);

// Copies the lines of up to `keys_max` keys, spread over all there are, and of those that were
// asked for several in one step; of each up to `operations_max` in the order of calls without
// statistics, and every line that is not about a key. Throws std::runtime_error.
void write_slices(const History& history, const std::string& path, std::size_t keys_max,
                  std::size_t operations_max);

}  // namespace lockd::histories
