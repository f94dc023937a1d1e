#include "histories/key_checks.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace lockd::histories {
namespace {

using Possible = KeyHistory::Possible;

std::string show(const Hold& hold) { return "fence " + std::to_string(hold.fence()); }

std::string ms(Instant ns) { return std::to_string(ns / 1'000'000) + " ms"; }

Violation violation(const KeyHistory& key, std::string_view invariant, std::string what,
                    std::vector<std::uint32_t> lines) {
  return {std::string(invariant), key.name(), std::move(what), std::move(lines)};
}

// Holds that certainly overlap, whatever their fences say.
void check_overlaps(const KeyHistory& key, std::vector<Violation>& violations) {
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
  for (const Hold* hold : by_time) {
    while (!held.empty() && held.top()->held_until() <= hold->told().ret) held.pop();
    if (held.size() >= key.limit()) {
      violations.push_back(violation(key, "I1",
                                     show(*hold) + " and " + show(*held.top()) +
                                         " are held at once" +
                                         (key.limit() == 1 ? "" : ", and others too"),
                                     {held.top()->told().line, hold->told().line}));
    }
    held.push(hold);
  }
}

// In the order of fences: of the holds before it all but limit - 1 are over when one is granted,
// and it was granted by the time its client was told.
void check_hand_over(const KeyHistory& key, std::vector<Violation>& violations) {
  const auto ends_later = [](const Hold* a, const Hold* b) {
    return a->held_until() > b->held_until();
  };
  // The `limit` holds that end last, the first of them to end on top.
  std::priority_queue<const Hold*, std::vector<const Hold*>, decltype(ends_later)> last(ends_later);
  for (const Hold& hold : key.holds()) {
    if (last.size() == key.limit() && hold.told().ret < last.top()->held_until()) {
      const Hold& before = *last.top();
      const bool restarted = key.timeline().restarted(hold.told().server, before.told().ret,
                                                      std::max(hold.told().ret, before.told().ret));
      violations.push_back(violation(key, restarted ? "I8" : "I3",
                                     show(hold) + " was granted " +
                                         ms(before.held_until() - hold.told().ret) +
                                         " or more before " + show(before) + " could be over",
                                     {before.told().line, hold.told().line}));
    }
    last.push(&hold);
    if (last.size() > key.limit()) last.pop();
  }
}

// The times at which slots may have been taken, sorted for counting.
class Occupation {
 public:
  explicit Occupation(const KeyHistory& key) : limit_(key.limit()) {
    for (const Possible& possible : key.untold()) add(possible.from, possible.from, possible.to);
    for (const Hold& hold : key.holds()) {
      const bool waited_once = hold.told().function == Function::acquire;
      const Instant told = hold.told().ret - kLateMax;
      add(hold.asked(), waited_once ? std::max(hold.asked(), told) : hold.asked(), hold.over_by());
    }
    std::sort(begins_.begin(), begins_.end());
    std::sort(ends_.begin(), ends_.end());
    find_room();
  }

  // Whether every slot may have been taken at some instant between.
  bool may_be_full(Instant from, Instant to) const {
    const auto begun = std::upper_bound(begins_.begin(), begins_.end(), to) - begins_.begin();
    const auto ended = std::lower_bound(ends_.begin(), ends_.end(), from) - ends_.begin();
    return begun - ended >= static_cast<std::ptrdiff_t>(limit_);
  }

  // When the last of those ended that ended before; 0 if there was none.
  Instant last_end(Instant before) const {
    const auto ended = std::lower_bound(ends_.begin(), ends_.end(), before);
    return ended == ends_.begin() ? 0 : *std::prev(ended);
  }

  // For how long there was certainly room without a break, between the two.
  Instant room(Instant from, Instant to) const {
    Instant longest = 0;
    auto span = std::partition_point(room_.begin(), room_.end(),
                                     [from](const Possible& free) { return free.to < from; });
    for (; span != room_.end() && span->from < to; ++span) {
      longest = std::max(longest, std::min(span->to, to) - std::max(span->from, from));
    }
    return longest;
  }

 private:
  void add(Instant from, Instant late_from, Instant to) {
    begins_.push_back(from);
    ends_.push_back(to);
    late_.push_back({std::min(late_from, to), to});
  }

  // Only what is longer than kLateMax matters. There, a grant is taken to have been told within
  // that time.
  void find_room() {
    std::vector<std::pair<Instant, int>> changes;
    for (const Possible& possible : late_) {
      changes.emplace_back(possible.from, 1);
      changes.emplace_back(possible.to, -1);
    }
    // What begins comes before what ends at that time: no room in between.
    std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    Instant free_since = 0;
    std::int64_t taken = 0;
    for (const auto& [at, change] : changes) {
      const bool was_full = taken >= limit_;
      taken += change;
      const bool is_full = taken >= limit_;
      if (!was_full && is_full && at - free_since > kLateMax) room_.push_back({free_since, at});
      if (was_full && !is_full) free_since = at;
    }
    if (taken < limit_) room_.push_back({free_since, kNever});
  }

  const std::int64_t limit_;
  std::vector<Instant> begins_;
  std::vector<Instant> ends_;
  std::vector<Possible> late_;
  std::vector<Possible> room_;
};

// Refused at once, though there can have been nobody.
void check_try(const KeyHistory& key, const Occupation& occupation, const Operation& operation,
               std::vector<Violation>& violations) {
  if (occupation.may_be_full(operation.call, operation.ret)) return;
  const bool restarted = key.timeline().restarted(
      operation.server, occupation.last_end(operation.call), operation.call);
  violations.push_back(violation(key, restarted ? "I8" : "I5",
                                 "a try was turned away though there was certainly room",
                                 {operation.line}));
}

// In line for long, though there can have been nobody in the way.
void check_wait(const KeyHistory& key, const Occupation& occupation, const Operation& operation,
                std::vector<Violation>& violations) {
  const bool timed_out = operation.result == Result::timeout;
  // When it came is not known to the last moment; that it waited `timeout` long is.
  Instant from = operation.call;
  Instant to = operation.ret - kLateMax;
  if (timed_out) {
    from = std::max(from, operation.ret - operation.timeout);
    to = std::min(operation.ret, operation.call + operation.timeout);
  }
  if (to - from <= kLateMax || occupation.room(from, to) <= kLateMax) return;
  if (key.timeline().interrupted(operation.server, operation.call, operation.ret)) return;
  violations.push_back(violation(key, operation.call > key.timeline().healed() ? "I12" : "I5",
                                 "waited for " + ms(operation.ret - operation.call) +
                                     " beside a slot that was free for " +
                                     ms(occupation.room(from, to)),
                                 {operation.line}));
}

}  // namespace

void check_order(const KeyHistory& key, std::vector<Violation>& violations) {
  const Hold* last_asked = nullptr;
  for (const Hold& hold : key.holds()) {
    if (last_asked != nullptr && hold.queued_by() < last_asked->asked()) {
      const bool had_its_grant = hold.told().ret < last_asked->asked();
      violations.push_back(violation(key, had_its_grant ? "I2" : "I4",
                                     show(hold) + (had_its_grant ? " was told" : " was in line") +
                                         " before " + show(*last_asked) + " was asked for",
                                     {hold.told().line, last_asked->told().line}));
    }
    if (last_asked == nullptr || last_asked->asked() < hold.asked()) last_asked = &hold;
  }
}

void check_exclusion(const KeyHistory& key, std::vector<Violation>& violations) {
  check_overlaps(key, violations);
  check_hand_over(key, violations);
}

void check_conservation(const KeyHistory& key, std::vector<Violation>& violations) {
  const Occupation occupation(key);
  for (const Operation* operation : key.operations()) {
    const bool asks =
        operation->function == Function::acquire || operation->function == Function::wait;
    if (!asks) continue;
    if (operation->result == Result::timeout && operation->timeout == 0 &&
        operation->function == Function::acquire) {
      check_try(key, occupation, *operation, violations);
    } else if (operation->result == Result::timeout || operation->result == Result::ok) {
      check_wait(key, occupation, *operation, violations);
    } else if (operation->result == Result::info && operation->call > key.timeline().healed() &&
               operation->gave_up > operation->call + operation->timeout + kLateMax) {
      violations.push_back(violation(key, "I12", "never had an answer", {operation->line}));
    }
  }
}

}  // namespace lockd::histories
