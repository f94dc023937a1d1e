#pragma once

#include <string>
#include <vector>

namespace lockd {

// This machine's addresses that are not loopback: who connects to one comes from it.
std::vector<std::string> outer_addresses();

}  // namespace lockd
