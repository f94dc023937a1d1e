// A client that takes, renews and releases locks and semaphores until its server dies, remembers
// what it was told, and holds the next server to it.
//
// Keys of its own are touched by nobody else, so there it knows what must be: what it was granted
// is held as long as its lease certainly runs, what it released is free, and what was on its way
// when the server died has happened or has not. Keys that all witnesses share are for the history,
// which is looked at in the end.
//
// Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "durability/history.h"
#include "support/line_client.h"

namespace lockd {

class Witness {
 public:
  Witness(unsigned number, std::uint32_t seed);

  // Asks for everything that is known. False if the server died, or refused to go on, meanwhile.
  bool verify(LineClient& client);
  // Goes on until the server dies or refuses. Keys named after `shared` are shared.
  void work(LineClient& client, const std::string& shared);

  // What was not as it must be.
  const std::vector<std::string>& complaints() const { return complaints_; }
  // When the last request was sent that was answered with ok.
  Instant last_success() const { return last_success_; }
  void testify(History& history) const;

 private:
  using Seconds = std::chrono::seconds;

  struct Reply {
    std::string text;
    Instant asked;
    Instant told;

    bool lost() const {
      return text.starts_with('<') || text == "error_storage" || text == "error_draining";
    }
    bool granted() const { return text.starts_with("ok ") || text.starts_with("acquired "); }
  };
  struct Hold {
    std::string token;
    Seconds lease;
    Instant over_by;           // the longest lease that it can have is over then
    bool releasing = false;    // and nobody knows what came of it
    std::size_t evidence = 0;  // index of its grant
  };
  struct Key {
    std::string name;
    std::uint32_t limit = 1;  // 1: a lock
    std::vector<Hold> holds{};
    std::vector<std::string> ended{};  // tokens that must never be good again
    std::uint32_t maybe = 0;           // grants that were asked for, and nobody knows the answer
  };
  struct Evidence {
    std::string key;
    std::uint32_t limit;
    ToldGrant grant;
  };

  bool verify(LineClient& client, Key& key);
  bool verify_ended(LineClient& client, const Key& key);
  bool probe(LineClient& client, Key& key);
  void expect_full(const Key& key);
  bool work_on_own(LineClient& client);
  bool work_on_shared(LineClient& client, Key key);

  // All return false when the server is lost.
  bool acquire(LineClient& client, Key& key, Seconds wait, Seconds lease);
  bool enqueue_and_wait(LineClient& client, Key& key, Seconds lease);
  bool renew(LineClient& client, Key& key, std::size_t hold, Seconds lease);
  bool release(LineClient& client, Key& key, std::size_t hold);
  bool let_go(LineClient& client, Key& key, std::size_t hold, const Reply& reply,
              Instant held_until);

  Reply ask(LineClient& client, const Key& key, std::string_view command,
            const std::string& argument);
  void keep(Key& key, const Reply& reply, Seconds lease);
  void rename(Key& key);
  void complain(const Key& key, const std::string& what, const Reply& reply);
  Instant& held_until(const Hold& hold) { return evidence_[hold.evidence].grant.held_until; }

  bool one_in(unsigned n) { return random_() % n == 0; }
  Seconds some_lease() { return one_in(5) ? Seconds(1 + random_() % 2) : Seconds(1000); }

  const unsigned number_;
  std::minstd_rand random_;
  std::vector<Key> own_;
  unsigned renamed_ = 0;
  std::vector<Evidence> evidence_;
  std::vector<std::string> complaints_;
  Instant last_success_{};
};

}  // namespace lockd
