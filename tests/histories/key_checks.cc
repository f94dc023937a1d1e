#include "histories/key_checks.h"

#include <algorithm>
#include <map>
#include <queue>

namespace lockd::histories {
namespace {

using Possible = KeyHistory::Possible;

std::string show(const Hold& hold) { return "fence " + std::to_string(hold.fence()); }

std::string ms(Instant ns) { return std::to_string(ns / 1'000'000) + " ms"; }

Finding finding(const KeyHistory& key, std::string_view invariant, std::string what,
                std::vector<std::uint32_t> lines) {
  return {std::string(invariant), key.name(), std::move(what), std::move(lines)};
}

// Holds that certainly overlap, whatever their fences say.
void check_overlaps(const KeyHistory& key, std::vector<Finding>& findings) {
  std::vector<const Hold*> by_time;
  for (const Hold& hold : key.holds()) {
    if (hold.told().ret < hold.held_until()) by_time.push_back(&hold);
  }
  std::sort(by_time.begin(), by_time.end(),
            [](const Hold* a, const Hold* b) { return a->told().ret < b->told().ret; });
  const auto ends_later = [](const Hold* a, const Hold* b) {
    return a->held_until() > b->held_until();
  };
  std::priority_queue<const Hold*, std::vector<const Hold*>, decltype(ends_later)> held(ends_later);
  std::int64_t taken = 0;
  for (const Hold* hold : by_time) {
    while (!held.empty() && held.top()->held_until() <= hold->told().ret) {
      taken -= held.top()->takes();
      held.pop();
    }
    taken += hold->takes();
    if (taken > key.capacity()) {
      findings.push_back(finding(key, "I1",
                                 show(*hold) + " and " + show(*held.top()) + " are held at once" +
                                     (held.size() == 1 ? "" : ", and others too"),
                                 {held.top()->told().line, hold->told().line}));
    }
    held.push(hold);
  }
}

// In the order of fences: what is left of the holds before it when one is granted fits beside it;
// and it was granted by the time its client was told.
void check_hand_over(const KeyHistory& key, std::vector<Finding>& findings) {
  std::multimap<Instant, const Hold*> before;  // by their ends
  for (const Hold& hold : key.holds()) {
    std::int64_t taken = hold.takes();
    for (auto last = before.rbegin(); last != before.rend(); ++last) {
      if (last->first <= hold.told().ret) break;
      const Hold& other = *last->second;
      taken += other.takes();
      if (taken <= key.capacity()) continue;
      const bool restarted = key.timeline().restarted(hold.told().server, other.told().ret,
                                                      std::max(hold.told().ret, other.told().ret));
      findings.push_back(finding(key, restarted ? "I8" : "I3",
                                 show(hold) + " was granted " +
                                     ms(other.held_until() - hold.told().ret) + " or more before " +
                                     show(other) + " could be over",
                                 {other.told().line, hold.told().line}));
      break;
    }
    before.emplace(hold.held_until(), &hold);
  }
}

// When enough of those before it, by their ends, are over that there is room for so much.
Instant room_from(const std::multimap<Instant, const Hold*>& before, std::int64_t takes,
                  std::int64_t capacity) {
  for (auto last = before.rbegin(); last != before.rend(); ++last) {
    takes += last->second->takes();
    if (takes > capacity) return last->first;
  }
  return 0;
}

// When the key may have been taken, and by how much, sorted for counting.
class Occupation {
 public:
  explicit Occupation(const KeyHistory& key) : capacity_(key.capacity()) {
    for (const Possible& possible : key.unacknowledged()) add(possible, possible.from);
    for (const Hold& hold : key.holds()) {
      const bool waited_once = hold.told().function == Function::acquire;
      const Instant told = hold.told().ret - kLateMax;
      add({hold.asked(), hold.over_by(), hold.takes()},
          waited_once ? std::max(hold.asked(), told) : hold.asked());
    }
    for (const KeyHistory::Wait& wait : key.waits()) {
      const bool blocks = !wait.is_try && wait.blocks_until > wait.call;
      if (blocks) add({wait.call, wait.blocks_until, capacity_}, wait.call);
    }
    sum_up(begins_);
    sum_up(ends_);
    for (const KeyHistory::Wait& wait : key.waits()) {
      if (!wait.is_try) waits_.push_back(wait);
    }
  }

  // Whether at some instant between there may have been no room for so much: it was taken, or
  // whoever was first in the queue waited for what was.
  bool may_refuse(std::int64_t takes, Instant from, Instant to) const {
    if (is_full(takes, from, to)) return true;
    const auto later =
        std::upper_bound(waits_.begin(), waits_.end(), to,
                         [](Instant at, const KeyHistory::Wait& wait) { return at < wait.call; });
    // The latest first: whoever is in the queue has mostly come not long ago.
    return std::any_of(std::reverse_iterator(later), waits_.rend(), [&](const auto& wait) {
      return wait.ret >= from &&
             is_full(wait.takes, std::max(from, wait.call), std::min(to, wait.ret));
    });
  }

  // The most that anybody can have waited for between.
  std::int64_t most_waited_for(Instant from, Instant to) const {
    std::int64_t most = 1;
    for (const KeyHistory::Wait& wait : waits_) {
      if (wait.call <= to && wait.ret >= from) most = std::max(most, wait.takes);
    }
    return most;
  }

  // When the last of those ended that ended before; 0 if there was none.
  Instant last_end(Instant before) const {
    const auto ended =
        std::lower_bound(ends_.begin(), ends_.end(), before,
                         [](const Change& change, Instant at) { return change.at < at; });
    return ended == ends_.begin() ? 0 : std::prev(ended)->at;
  }

  // For how long there was certainly room for so much without a break, between the two.
  Instant room(std::int64_t takes, Instant from, Instant to) {
    auto [found, is_new] = room_.try_emplace(takes);
    std::vector<Span>& spans = found->second;
    if (is_new) spans = find_room(takes);
    Instant longest = 0;
    auto span = std::partition_point(spans.begin(), spans.end(),
                                     [from](const Span& free) { return free.to < from; });
    for (; span != spans.end() && span->from < to; ++span) {
      longest = std::max(longest, std::min(span->to, to) - std::max(span->from, from));
    }
    return longest;
  }

 private:
  struct Span {
    Instant from;
    Instant to;
  };
  struct Change {
    Instant at;
    std::int64_t takes;  // and, once they are summed up, all before it
  };

  void add(const Possible& possible, Instant late_from) {
    begins_.push_back({possible.from, possible.takes});
    ends_.push_back({possible.to, possible.takes});
    late_.push_back({std::min(late_from, possible.to), possible.to, possible.takes});
  }

  static void sum_up(std::vector<Change>& changes) {
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.at < b.at; });
    std::int64_t sum = 0;
    for (Change& change : changes) change.takes = sum += change.takes;
  }

  // Whether all that may have been taken at some time between leaves no room for so much.
  bool is_full(std::int64_t takes, Instant from, Instant to) const {
    const auto begun =
        std::upper_bound(begins_.begin(), begins_.end(), to,
                         [](Instant at, const Change& change) { return at < change.at; });
    const auto ended =
        std::lower_bound(ends_.begin(), ends_.end(), from,
                         [](const Change& change, Instant at) { return change.at < at; });
    const std::int64_t before = ended == ends_.begin() ? 0 : std::prev(ended)->takes;
    const std::int64_t by_then = begun == begins_.begin() ? 0 : std::prev(begun)->takes;
    return by_then - before + takes > capacity_;
  }

  // Only what is longer than kLateMax matters. There, a grant is taken to have been told within
  // that time.
  std::vector<Span> find_room(std::int64_t takes) const {
    std::vector<Change> changes;
    for (const Possible& possible : late_) {
      changes.push_back({possible.from, possible.takes});
      changes.push_back({possible.to, -possible.takes});
    }
    // What begins comes before what ends at that time: no room in between.
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.takes > b.takes;
    });
    std::vector<Span> spans;
    Instant free_since = 0;
    std::int64_t taken = 0;
    for (const Change& change : changes) {
      const bool was_full = taken + takes > capacity_;
      taken += change.takes;
      const bool is_full = taken + takes > capacity_;
      if (!was_full && is_full && change.at - free_since > kLateMax) {
        spans.push_back({free_since, change.at});
      }
      if (was_full && !is_full) free_since = change.at;
    }
    if (taken + takes <= capacity_) spans.push_back({free_since, kNever});
    return spans;
  }

  const std::int64_t capacity_;
  std::vector<Change> begins_;
  std::vector<Change> ends_;
  std::vector<Possible> late_;
  std::vector<KeyHistory::Wait> waits_;
  std::map<std::int64_t, std::vector<Span>> room_;  // by what it is for
};

// Refused at once, though there can have been nobody.
void check_try(const KeyHistory& key, const Occupation& occupation, const Operation& operation,
               std::vector<Finding>& findings) {
  if (occupation.may_refuse(takes_of(operation), operation.call, operation.ret)) return;
  const bool restarted = key.timeline().restarted(
      operation.server, occupation.last_end(operation.call), operation.call);
  findings.push_back(finding(key, restarted ? "I8" : "I5",
                             "a try was turned away though there was certainly room",
                             {operation.line}));
}

// In the queue for long, though there can have been nobody in the way: not of it, nor of whoever
// may have been before it.
void check_wait(const KeyHistory& key, Occupation& occupation, const Operation& operation,
                std::vector<Finding>& findings) {
  const bool timed_out = operation.result == Result::timeout;
  // When it came is not known to the last moment; that it waited `timeout` long is.
  Instant from = operation.call;
  Instant to = operation.ret - kLateMax;
  if (timed_out) {
    from = std::max(from, operation.ret - operation.timeout);
    to = std::min(operation.ret, operation.call + operation.timeout);
  }
  if (to - from <= kLateMax) return;
  const std::int64_t most = std::max(takes_of(operation), occupation.most_waited_for(from, to));
  const Instant room = occupation.room(most, from, to);
  if (room <= kLateMax) return;
  if (key.timeline().interrupted(operation.server, operation.call, operation.ret)) return;
  findings.push_back(finding(key, operation.call > key.timeline().healed() ? "I12" : "I5",
                             "waited for " + ms(operation.ret - operation.call) +
                                 " beside room that was free for " + ms(room),
                             {operation.line}));
}

}  // namespace

void check_order(const KeyHistory& key, std::vector<Finding>& findings) {
  const Hold* last_asked = nullptr;
  for (const Hold& hold : key.holds()) {
    if (last_asked != nullptr && hold.queued_by() < last_asked->asked()) {
      const bool had_its_grant = hold.told().ret < last_asked->asked();
      findings.push_back(finding(key, had_its_grant ? "I2" : "I4",
                                 show(hold) + (had_its_grant ? " was told" : " was in the queue") +
                                     " before " + show(*last_asked) + " was asked for",
                                 {hold.told().line, last_asked->told().line}));
    }
    if (last_asked == nullptr || last_asked->asked() < hold.asked()) last_asked = &hold;
  }
}

void check_exclusion(const KeyHistory& key, std::vector<Finding>& findings) {
  check_overlaps(key, findings);
  check_hand_over(key, findings);
}

void note_set_grants(const KeyHistory& key, SetGrants& grants) {
  const std::vector<Hold>& holds = key.holds();
  if (std::ranges::none_of(holds, [](const Hold& hold) { return hold.told().keys > 1; })) return;
  std::multimap<Instant, const Hold*> before;  // by their ends
  for (const Hold& hold : holds) {
    if (hold.told().keys > 1) {
      SetGrant& grant = grants[set_of(hold.told())];
      const Instant from = room_from(before, hold.takes(), key.capacity());
      if (from > grant.from) {
        grant.from = from;
        grant.from_key = key.name();
      }
      grant.line = hold.told().line;
    }
    before.emplace(hold.held_until(), &hold);
  }
  Instant told = kNever;  // the first of those after it
  for (auto hold = holds.rbegin(); hold != holds.rend(); ++hold) {
    told = std::min(told, hold->told().ret);
    if (hold->told().keys == 1) continue;
    SetGrant& grant = grants[set_of(hold->told())];
    if (told < grant.to) {
      grant.to = told;
      grant.to_key = key.name();
    }
  }
}

void check_set_grants(const SetGrants& grants, std::vector<Finding>& findings) {
  for (const auto& [name, grant] : grants) {
    if (grant.from <= grant.to) continue;
    findings.push_back({"I15",
                        grant.from_key,
                        "can have been granted " + ms(grant.from - grant.to) + " later than " +
                            grant.to_key + " at the earliest",
                        {grant.line}});
  }
}

void check_conservation(const KeyHistory& key, SetTries& tries, std::vector<Finding>& findings) {
  Occupation occupation(key);
  for (const Operation* operation : key.operations()) {
    const bool asks =
        operation->function == Function::acquire || operation->function == Function::wait;
    if (!asks) continue;
    const bool answered = operation->result == Result::timeout || operation->result == Result::ok;
    if (operation->keys > 1 && answered) {
      if (operation->result == Result::ok || operation->timeout != 0) continue;
      SetTry& attempt = tries[set_of(*operation)];
      ++attempt.keys_seen;
      attempt.keys = operation->keys;
      attempt.key = key.name();
      attempt.line = operation->line;
      attempt.may_be_refused |=
          occupation.may_refuse(takes_of(*operation), operation->call, operation->ret);
    } else if (operation->result == Result::timeout && operation->timeout == 0 &&
               operation->function == Function::acquire) {
      check_try(key, occupation, *operation, findings);
    } else if (operation->result == Result::timeout || operation->result == Result::ok) {
      check_wait(key, occupation, *operation, findings);
    } else if (operation->result == Result::info && operation->call > key.timeline().healed() &&
               operation->gave_up > operation->call + operation->timeout + kLateMax) {
      findings.push_back(finding(key, "I12", "never had an answer", {operation->line}));
    }
  }
}

void check_tries_for_sets(const SetTries& tries, std::vector<Finding>& findings) {
  for (const auto& [name, attempt] : tries) {
    if (attempt.may_be_refused || attempt.keys_seen < attempt.keys) continue;
    findings.push_back({"I5",
                        attempt.key,
                        "a try for several keys was turned away though all certainly had room",
                        {attempt.line}});
  }
}

}  // namespace lockd::histories
