#include "core/testing/history_generator.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "lockd/requests.h"

namespace lockd {
namespace {

// The shares of the verbs, in permille.
constexpr std::array<unsigned, kVerbNames.size()> kShares = {
    340, 105, 105, 65, 110, 20, 40, 20, 10, 35, 40, 30, 20, 5, 30, 25, 90, 10, 25, 5};

// Splitmix64: RapidCheck's own numbers are too slow to take eight for every operation.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  unsigned roll(unsigned sides) {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return static_cast<unsigned>((x ^ (x >> 31)) % sides);
  }
  bool chance(unsigned percent) { return roll(100) < percent; }

 private:
  std::uint64_t state_;
};

// The character of one history. Each history omits some operations and repeats others, which
// reaches more states than an even mixture.
struct Profile {
  Profile(Dice& dice, bool many_keys) : many_keys(many_keys) {
    for (unsigned& share : shares) share *= dice.roll(4);
    shares[0] += 1;
    moves = many_keys ? 2 + dice.roll(6) : std::array{3u, 10u, 30u, 60u}[dice.roll(4)];
    lasting = std::array{0u, 15u, 50u, 80u}[dice.roll(4)];
    tries = std::array{2u, 10u, 30u, 70u}[dice.roll(4)];
    sharing = std::array{0u, 30u, 60u, 90u}[dice.roll(4)];
    agreeing = dice.chance(70) ? 94 : 60;
    greed = std::array{0u, 20u, 60u}[dice.roll(3)];
    owners = dice.chance(40) ? kNames : kNoSession + 1;
    favourite = dice.roll(owners);
    favourite_key = dice.chance(50) ? 1 : dice.roll(4);
  }

  const bool many_keys;
  std::array<unsigned, kShares.size()> shares = kShares;
  unsigned moves;      // percent of the calls before which time passes
  unsigned lasting;    // percent of the leases and waits that are long
  unsigned tries;      // percent of the requests that do not wait
  unsigned sharing;    // percent of the lock requests in shared mode
  unsigned agreeing;   // percent of the semaphore requests that name the usual limit
  unsigned greed;      // percent of the semaphore requests for several permits
  unsigned owners;     // the number of owners: the names, or all that Op::owner knows
  unsigned favourite;  // the owner with the most requests
  unsigned favourite_key;
};

std::int64_t random_jump(Dice& dice) { return std::int64_t{1} << (4 + dice.roll(36)); }

std::int64_t random_duration(Dice& dice, const Profile& profile) {
  if (!dice.chance(profile.lasting)) return 1 + dice.roll(20);
  return dice.chance(70) ? random_jump(dice) : kDurationMax.count();
}

Verb random_verb(Dice& dice, const Profile& profile) {
  unsigned rest = dice.roll(std::accumulate(profile.shares.begin(), profile.shares.end(), 0u));
  std::uint8_t verb = 0;
  while (rest >= profile.shares[verb]) rest -= profile.shares[verb++];
  return Verb{verb};
}

// Makes the operation invalid in one way only: the rules leave open which of several flaws a reply
// names.
void make_invalid(Dice& dice, Op& op) {
  const bool is_lock = kind_of(op.key) == Kind::lock;
  op.owner %= kNoSession;
  op.permits = 1;
  op.shared = false;
  switch (dice.roll(7)) {
    case 0:
      op.key = kBadTexts + dice.roll(5);
      op.limit = 1;
      break;
    case 1: op.owner = kBadTexts + dice.roll(5); break;
    case 2: op.ttl = -std::int64_t{dice.roll(2)}; break;
    case 3: op.wait = -1 - std::int64_t{dice.roll(2)}; break;
    case 4: op.limit = is_lock ? 2 : dice.roll(2) * (kLimitMax + 1); break;
    case 5: op.permits = dice.roll(2) * (op.limit + 1); break;
    case 6: (is_lock ? op.ttl = 0 : op.shared = true); break;
  }
}

Op random_op(Dice& dice, const Setup& setup, const Profile& profile) {
  Op op;
  op.verb = random_verb(dice, profile);
  op.key = dice.chance(profile.many_keys ? 5 : 40) ? profile.favourite_key : dice.roll(setup.keys);
  op.owner = dice.chance(40) ? profile.favourite : dice.roll(profile.owners);
  if (dice.chance(profile.moves)) op.step = dice.chance(90) ? 1 + dice.roll(10) : random_jump(dice);
  if (profile.many_keys && op.step > 0 && dice.chance(50)) op.step = 10;
  if (dice.chance(2)) op.step = -1 - std::int64_t{dice.roll(5)};
  op.ttl = profile.many_keys && dice.chance(60) ? 10 : random_duration(dice, profile);
  op.wait = dice.chance(profile.tries) ? 0 : random_duration(dice, profile);
  op.limit = dice.chance(profile.agreeing) ? usual_limit(op.key)
             : dice.chance(90)             ? 1 + dice.roll(6)
                                           : kLimitMax;
  if (kind_of(op.key) == Kind::lock) {
    op.limit = 1;
    op.shared = dice.chance(profile.sharing);
  } else if (dice.chance(profile.greed)) {
    op.permits = dice.chance(95) ? 1 + dice.roll(std::min(op.limit, 4u)) : op.limit;
  }
  op.pick = dice.roll(256);
  if (dice.chance(2) && setup.fences_left == kPlenty) make_invalid(dice, op);
  return op;
}

Setup random_setup(Dice& dice, bool many_keys) {
  constexpr std::array<std::uint64_t, 4> kStarts = {100, 1000, (std::uint64_t{1} << 40) - 100,
                                                    1'700'000'000'000'000'000};
  Setup setup;
  setup.keys = many_keys ? 40 : 2 + dice.roll(4);
  setup.keys_max = many_keys ? 30 + dice.roll(20) : 2 + dice.roll(5);
  setup.waiters_max = dice.roll(4);
  if (dice.chance(40)) setup.holds_max = many_keys ? 10 + dice.roll(30) : 1 + dice.roll(8);
  if (dice.chance(30)) setup.holds_per_client_max = 1 + dice.roll(many_keys ? 10 : 4);
  if (dice.chance(30)) setup.ttl_max = 1 + dice.roll(30);
  setup.refuses_tries_at_full_queue = dice.chance(50);
  setup.keeps_idle_limits = dice.chance(50);
  if (dice.chance(8)) setup.fences_left = dice.roll(20);
  setup.start = kStarts[dice.roll(4)];
  setup.hash_seed = dice.roll(1 << 30);
  return setup;
}

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
  simplify(simpler, op, &Op::owner, 0u);
  simplify(simpler, op, &Op::limit, std::uint32_t{1});
  simplify(simpler, op, &Op::permits, std::uint32_t{1});
  if (op.shared) {
    simpler.push_back(op);
    simpler.back().shared = false;
  }
  simplify(simpler, op, &Op::pick, 0u);
  return rc::seq::fromContainer(std::move(simpler));
}

rc::Seq<LockHistory> shrunk_histories(const LockHistory& history) {
  std::vector<Setup> setups;
  simplify(setups, history.setup, &Setup::waiters_max, std::uint32_t{0});
  simplify(setups, history.setup, &Setup::holds_max, std::uint64_t{0});
  simplify(setups, history.setup, &Setup::holds_per_client_max, std::uint32_t{0});
  simplify(setups, history.setup, &Setup::ttl_max, std::int64_t{0});
  for (bool Setup::*const option :
       {&Setup::refuses_tries_at_full_queue, &Setup::keeps_idle_limits}) {
    if (!(history.setup.*option)) continue;
    setups.push_back(history.setup);
    setups.back().*option = false;
  }
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

}  // namespace

rc::Gen<LockHistory> generate_history(bool many_keys) {
  return [many_keys](const rc::Random& random, int size) {
    Dice dice(rc::Random(random).next());
    const Profile profile(dice, many_keys);
    LockHistory history{random_setup(dice, many_keys), {}};
    const unsigned length = 1 + dice.roll(static_cast<unsigned>(size) + 1);
    for (unsigned i = 0; i < length; ++i)
      history.ops.push_back(random_op(dice, history.setup, profile));
    return rc::shrinkable::shrinkRecur(std::move(history), &shrunk_histories);
  };
}

}  // namespace lockd
