#include "durability/witness.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kEndedKept = 4;
constexpr unsigned kShared = 8;

Fence fence_of(std::string_view token) {
  Fence fence = 0;
  std::from_chars(token.data(), token.data() + 16, fence, 16);
  return fence;
}

}  // namespace

Witness::Witness(unsigned number, std::uint32_t seed) : number_(number), random_(seed) {
  for (const std::uint32_t limit : {1U, 1U, 1U, 1U, 2U, 3U})
    own_.push_back({.name = {}, .limit = limit});
  for (Key& key : own_) rename(key);
}

// Nobody knows the tokens of grants that were on their way when the server died: a key that may be
// full of them is given up.
void Witness::rename(Key& key) {
  key = {.name = "own-" + std::to_string(number_) + "-" + std::to_string(++renamed_),
         .limit = key.limit};
}

bool Witness::verify(LineClient& client) {
  return std::all_of(own_.begin(), own_.end(), [&](Key& key) { return verify(client, key); });
}

bool Witness::verify(LineClient& client, Key& key) {
  for (std::size_t i = key.holds.size(); i-- > 0;) {
    // A short lease is left to end now and then.
    const Seconds lease = key.holds[i].lease;
    if (lease < 10s && one_in(2)) continue;
    if (!renew(client, key, i, lease)) return false;
  }
  return verify_ended(client, key) && probe(client, key);
}

bool Witness::verify_ended(LineClient& client, const Key& key) {
  for (const std::string& token : key.ended) {
    const Reply reply = ask(client, key, "n", token);
    if (reply.lost()) return false;
    if (reply.text != "error") complain(key, "what had ended is held again: " + token, reply);
  }
  return true;
}

// Somebody else comes, and finds what is known to be so.
bool Witness::probe(LineClient& client, Key& key) {
  Key stranger{.name = key.name, .limit = key.limit};
  bool lives = acquire(client, stranger, 0s, 1s);
  if (lives && stranger.holds.empty()) {
    expect_full(key);
    return true;
  }
  if (lives) key.maybe = std::min(key.maybe, key.limit - 1);  // there was room for one more
  // Whether there may have been, the history knows.
  lives = lives && release(client, stranger, 0);
  if (!lives) ++key.maybe;
  return lives;
}

// Precondition: a try was not granted.
void Witness::expect_full(const Key& key) {
  if (key.holds.size() + key.maybe >= key.limit) return;
  complaints_.push_back("key '" + key.name + "': free, and not granted");
}

void Witness::work(LineClient& client, const std::string& shared) {
  for (bool lives = true; lives;) {
    if (!one_in(3)) {
      lives = work_on_own(client);
    } else {
      const unsigned number = random_() % kShared;
      lives = work_on_shared(client, {.name = shared + "-" + std::to_string(number),
                                      .limit = number % 4 == 0 ? 2U : 1U});
    }
  }
}

bool Witness::work_on_own(LineClient& client) {
  Key& key = own_[random_() % own_.size()];
  const std::size_t held = key.holds.size();
  if (held == 0 && key.maybe >= key.limit) rename(key);
  if (held == 0 || (held < key.limit && one_in(2))) {
    if (!acquire(client, key, 0s, some_lease())) return false;
    if (key.holds.size() == held) expect_full(key);
    return true;
  }
  const std::size_t hold = random_() % held;
  return one_in(3) ? renew(client, key, hold, some_lease()) : release(client, key, hold);
}

// Leases are short: when the server dies, others come again to what nobody can release.
bool Witness::work_on_shared(LineClient& client, Key key) {
  const bool lives = one_in(3) ? enqueue_and_wait(client, key, 1s)
                               : acquire(client, key, Seconds(one_in(3) ? 1 : 0), 1s);
  if (!lives) return false;
  if (!key.holds.empty() && one_in(3) && !renew(client, key, 0, 1s)) return false;
  if (key.holds.empty() || one_in(10)) return true;
  return release(client, key, 0);
}

bool Witness::acquire(LineClient& client, Key& key, Seconds wait, Seconds lease) {
  const std::string limit = key.limit == 1 ? "" : std::to_string(key.limit) + " ";
  ++key.maybe;
  const Reply reply = ask(
      client, key, "l", std::to_string(wait.count()) + " " + limit + std::to_string(lease.count()));
  if (reply.lost()) return false;
  --key.maybe;
  if (reply.granted()) {
    keep(key, reply, lease);
  } else if (reply.text != "timeout" && !(wait > 0s && reply.text == "error")) {
    complain(key, "neither granted nor refused", reply);  // who waits hears when the server goes
  }
  return true;
}

bool Witness::enqueue_and_wait(LineClient& client, Key& key, Seconds lease) {
  const std::string limit = key.limit == 1 ? "" : std::to_string(key.limit) + " ";
  Reply reply = ask(client, key, "e", limit + std::to_string(lease.count()));
  // Whoever has a place already, or was in the queue too long, hears of an error.
  const bool queued = reply.text == "queued";
  if (queued) reply = ask(client, key, "w", "1");
  if (reply.lost()) return false;
  if (reply.granted()) {
    keep(key, reply, lease);
  } else if (reply.text != "error" && !(queued && reply.text == "timeout")) {
    complain(key, "neither granted nor refused", reply);
  }
  return true;
}

bool Witness::renew(LineClient& client, Key& key, std::size_t index, Seconds lease) {
  Hold& hold = key.holds[index];
  Instant& until = held_until(hold);
  const Instant before = hold.releasing ? Instant{} : until;
  until = std::min(until, Instant::clock::now() + lease);  // it may shorten
  const Reply reply = ask(client, key, "n", hold.token + " " + std::to_string(lease.count()));
  if (reply.lost()) {
    hold.over_by = std::max(hold.over_by, reply.told + lease);
    return false;
  }
  if (reply.text != "ok " + std::to_string(lease.count())) {
    return let_go(client, key, index, reply, before);
  }
  if (reply.asked > hold.over_by) complain(key, "a lease that was over was renewed", reply);
  until = reply.asked + lease;
  hold.over_by = reply.told + lease;
  hold.lease = lease;
  hold.releasing = false;
  return true;
}

bool Witness::release(LineClient& client, Key& key, std::size_t index) {
  Hold& hold = key.holds[index];
  Instant& until = held_until(hold);
  const Instant before = hold.releasing ? Instant{} : until;
  until = std::min(until, Instant::clock::now());
  hold.releasing = true;
  const Reply reply = ask(client, key, "r", hold.token);
  if (reply.lost()) return false;
  return let_go(client, key, index, reply, before);
}

// The server says that there is no such hold, or no more. It may not until `held_until`.
bool Witness::let_go(LineClient& client, Key& key, std::size_t index, const Reply& reply,
                     Instant held_until) {
  if (reply.text != "ok") {
    // With a journal that has failed it says so to everybody, and tells nothing by it.
    const Key other{.name = "still-there-" + std::to_string(number_)};
    if (ask(client, other, "l", "0 1").lost()) return false;
    if (reply.text != "error") complain(key, "that is no answer", reply);
    if (reply.told < held_until) complain(key, "lost: " + key.holds[index].token, reply);
  }
  key.ended.push_back(std::move(key.holds[index].token));
  key.holds.erase(key.holds.begin() + static_cast<std::ptrdiff_t>(index));
  if (key.ended.size() > kEndedKept) key.ended.erase(key.ended.begin());
  return true;
}

void Witness::keep(Key& key, const Reply& reply, Seconds lease) {
  const std::string token = token_of(reply.text);
  evidence_.push_back({.key = (key.limit == 1 ? "lock " : "semaphore ") + key.name,
                       .limit = key.limit,
                       .grant = {.fence = fence_of(token),
                                 .asked = reply.asked,
                                 .told = reply.told,
                                 .held_until = reply.asked + lease}});
  key.holds.push_back({.token = token,
                       .lease = lease,
                       .over_by = reply.told + lease,
                       .evidence = evidence_.size() - 1});
}

Witness::Reply Witness::ask(LineClient& client, const Key& key, std::string_view command,
                            const std::string& argument) {
  const std::string whole = (key.limit == 1 ? "" : "s") + std::string(command);
  Reply reply{.text = {}, .asked = Instant::clock::now(), .told = {}};
  reply.text = client.ask(request(whole, key.name, argument));
  reply.told = Instant::clock::now();
  if (reply.text.starts_with("ok") || reply.granted()) last_success_ = reply.asked;
  if (reply.text == kSilence) complain(key, "no reply", reply);
  return reply;
}

void Witness::complain(const Key& key, const std::string& what, const Reply& reply) {
  complaints_.push_back("key '" + key.name + "': " + what + "; reply: " + reply.text);
}

void Witness::testify(History& history) const {
  for (const Evidence& one : evidence_) history.add(one.key, one.limit, one.grant);
}

}  // namespace lockd
