// Makes one visitor of several lambdas, for std::visit.
#pragma once

namespace lockd {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace lockd
