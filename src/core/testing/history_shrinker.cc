#include "core/testing/history_shrinker.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace lockd {
namespace {

template <typename Value, typename Field>
void simplify(std::vector<Value>& simpler, Value value, Field Value::*field, Field simplest) {
  const Field was = value.*field;
  std::vector<Field> steps = {simplest, static_cast<Field>(was / 2)};
  if (was > simplest && was < 32) steps.push_back(static_cast<Field>(was - 1));
  for (Field to : steps) {
    value.*field = to;
    if (to != was && (to == simplest || (to > simplest && to < was))) simpler.push_back(value);
  }
}

rc::Seq<Op> simpler_ops(const Op& op) {
  std::vector<Op> simpler;
  simplify(simpler, op, &Op::step, std::int64_t{0});
  simplify(simpler, op, &Op::ttl, std::int64_t{1});
  simplify(simpler, op, &Op::wait, std::int64_t{0});
  simplify(simpler, op, &Op::key, 0u);
  simplify(simpler, op, &Op::who, 0u);
  simplify(simpler, op, &Op::limit, std::uint32_t{1});
  simplify(simpler, op, &Op::pick, 0u);
  return rc::seq::fromContainer(std::move(simpler));
}

}  // namespace

rc::Seq<LockHistory> simpler_histories(const LockHistory& history) {
  std::vector<Setup> setups;
  simplify(setups, history.setup, &Setup::waiters_max, std::uint32_t{0});
  simplify(setups, history.setup, &Setup::hash_seed, std::uint64_t{0});
  if (history.setup.fences_left != kPlenty) {
    simplify(setups, history.setup, &Setup::fences_left, 0u);
  }
  simplify(setups, history.setup, &Setup::start, std::uint64_t{100});
  std::vector<std::vector<Op>> beginnings;
  for (std::size_t cut = history.ops.size() / 2; cut > 0; cut /= 2) {
    beginnings.emplace_back(history.ops.begin(),
                            history.ops.end() - static_cast<std::ptrdiff_t>(cut));
  }
  const auto with_ops = [setup = history.setup](std::vector<Op> ops) {
    return LockHistory{setup, std::move(ops)};
  };
  const auto with_setup = [ops = history.ops](const Setup& setup) {
    return LockHistory{setup, ops};
  };
  return rc::seq::concat(rc::seq::map(rc::seq::fromContainer(std::move(beginnings)), with_ops),
                         rc::seq::map(rc::shrink::removeChunks(history.ops), with_ops),
                         rc::seq::map(rc::shrink::eachElement(history.ops, &simpler_ops), with_ops),
                         rc::seq::map(rc::seq::fromContainer(std::move(setups)), with_setup));
}

}  // namespace lockd
