// Makes one visitor of several lambdas, for std::visit.
#pragma once

namespace lockd {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

// clang 14 does not deduce the arguments of an aggregate.
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace lockd
