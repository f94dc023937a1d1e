// What a client may be permitted. docs/security.md says what each lets it do.
#pragma once

#include <cstdint>

namespace lockd {

enum class Right : std::uint8_t {
  none,          // whoever is let in may
  lock,          // take, keep, give back and wait
  signal,        // publish and listen
  read,          // look at everything
  read_or_lock,  // either is enough
  admin,         // end what others hold; and all of the above
};

}  // namespace lockd
