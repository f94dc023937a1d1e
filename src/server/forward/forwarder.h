// Where the sessions of all loops and the link to the leader meet.
//
// A session whose server follows leaves here what is to be asked of the leader (LeaderMail); what
// comes of it is left with its host (LeaderNews). Each connection of the link has a number, its
// generation: mail says which it is meant for, and what is for another is dropped, because whoever
// wrote it hears of the new one and asks again.
//
// There is one in every server of a cluster that has a secret, whether it forwards or not: the
// leader's end of links finds here what it has to know too. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/sha256.h"
#include "lockd/types.h"
#include "server/settings/options.h"

namespace lockd {

// What the link says to one client's session.
struct LeaderNews {
  enum class What : std::uint8_t {
    bytes,   // the leader says `text`
    up,      // the link is there, in this generation: what was asked before it has no answer
    down,    // it is not
    absent,  // and no leader was reached for so long that there is none
    here,    // this server leads
    closed,  // the leader has closed the session
  };
  What what = What::bytes;
  std::uint64_t generation = 0;
  std::string text{};
};

// Where news is left for a session, by any thread.
class NewsReader {
 public:
  virtual void leave_news(SessionId client, LeaderNews news) = 0;

 protected:
  ~NewsReader() = default;
};

struct LeaderMail {
  enum class What : std::uint8_t {
    introduce,  // `text` is the ForwardedClient that it is from now on; taken in any generation
    ask,        // `text` is requests
    taken,      // `count` bytes of answers
    end,        // the client sends no more
    close,      // it is gone
    detach,     // likewise, and keeps what it holds
  };
  What what = What::ask;
  SessionId client = 0;
  std::uint64_t generation = 0;
  std::string text{};
  std::uint64_t count = 0;
  NewsReader* reader = nullptr;  // introduce: of the client
};

class Forwarder {
 public:
  // Of a server that is one of several and knows their secret.
  explicit Forwarder(const Options& options);

  const HashedSecret& secret() const { return secret_; }
  const std::string& node() const { return node_; }
  // Of this life of this server; random. Sessions of another mean nothing here.
  std::uint64_t incarnation() const { return incarnation_; }
  // Whether what this server cannot answer is asked of the leader.
  bool forwards() const { return forwards_; }

  // The link's, while it is up; else 0.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  void leave(LeaderMail mail) EXCLUDES(mutex_);
  // How often the leader was asked, and asked again.
  std::uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }

  // For the link. `wake` is called, by any thread, when mail comes to where there was none.
  void attach(std::function<void()> wake) EXCLUDES(mutex_);
  std::vector<LeaderMail> take_mail() EXCLUDES(mutex_);
  void set_generation(std::uint64_t generation) {
    generation_.store(generation, std::memory_order_release);
  }

  // For the leader's ends of links: which session is that of a node, from its coming until all of
  // its clients have ended there; 0: none is.
  SessionId link_of(const std::string& node) EXCLUDES(mutex_);
  void enter_link(const std::string& node, SessionId link) EXCLUDES(mutex_);
  void leave_link(const std::string& node, SessionId link) EXCLUDES(mutex_);

 private:
  const HashedSecret secret_;
  const std::string node_;
  const bool forwards_;
  const std::uint64_t incarnation_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> asked_{0};

  Mutex mutex_;
  std::function<void()> wake_ GUARDED_BY(mutex_);
  std::vector<LeaderMail> mail_ GUARDED_BY(mutex_);
  std::map<std::string, SessionId> links_ GUARDED_BY(mutex_);
};

}  // namespace lockd
