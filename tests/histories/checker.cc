#include "histories/checker.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "histories/key_checks.h"
#include "histories/key_history.h"
#include "histories/timeline.h"

namespace lockd::histories {
namespace {

// I11: what was asked after the storage had failed, and was promised all the same.
void check_failures(const History& history, const Timeline& timeline,
                    std::vector<Finding>& findings) {
  for (const Operation& operation : history.operations) {
    const bool promises = is_about_hold(operation.function) &&
                          (operation.result == Result::ok || operation.result == Result::queued);
    if (!promises || operation.call <= timeline.failed(operation.server, operation.life)) continue;
    findings.push_back({"I11",
                        history.keys[operation.key],
                        "promised after the server's storage had failed",
                        {operation.line}});
  }
}

// I14: who holds is served while a server stops. In a cluster another serves them; and callers in
// the server's process see it close.
void check_stops(const History& history, const Timeline& timeline, std::vector<Finding>& findings) {
  for (const Operation& operation : history.operations) {
    const bool follows_up =
        operation.function == Function::renew || operation.function == Function::release;
    if (!follows_up || operation.result != Result::draining) continue;
    if (operation.via == Via::lib || timeline.is_cluster(operation.server)) continue;
    findings.push_back({"I14",
                        history.keys[operation.key],
                        "was refused to its holder because the server stops",
                        {operation.line}});
  }
}

// I13: in a cluster, whoever was asked after a later epoch had answered says nothing of what is
// held. Operations are in the order of calls.
void check_epochs(const History& history, const Timeline& timeline,
                  std::vector<Finding>& findings) {
  const auto tells = [&](const Operation& operation) {
    const bool answered = operation.result <= Result::not_held;
    return is_about_hold(operation.function) && answered && operation.life != 0 &&
           timeline.is_cluster(operation.server);
  };
  std::vector<const Operation*> answers;
  for (const Operation& operation : history.operations) {
    if (tells(operation)) answers.push_back(&operation);
  }
  std::sort(answers.begin(), answers.end(),
            [](const Operation* a, const Operation* b) { return a->ret < b->ret; });
  std::vector<const Operation*> latest(history.servers.size(), nullptr);
  auto next = answers.begin();
  for (const Operation& operation : history.operations) {
    for (; next != answers.end() && (*next)->ret < operation.call; ++next) {
      const Operation*& last = latest[(*next)->server];
      if (last == nullptr || last->life < (*next)->life) last = *next;
    }
    if (!tells(operation)) continue;
    const Operation* const later = latest[operation.server];
    if (later == nullptr || later->life <= operation.life) continue;
    findings.push_back({"I13",
                        history.keys[operation.key],
                        "answered by epoch " + std::to_string(operation.life) + " after epoch " +
                            std::to_string(later->life) + " had answered",
                        {later->line, operation.line}});
  }
}

// I15: what was asked of several keys in one step has one answer, and a grant one fence. A release
// gives back what there is.
void check_sets(const History& history, std::vector<Finding>& findings) {
  std::map<SetName, const Operation*> first;
  for (const Operation& operation : history.operations) {
    const bool is_one =
        operation.function == Function::acquire || operation.function == Function::renew;
    if (!is_one || operation.keys == 1) continue;
    const Operation& other = *first.try_emplace(set_of(operation), &operation).first->second;
    const bool both = (other.result == Result::ok) == (operation.result == Result::ok);
    if (both && other.fence == operation.fence) continue;
    findings.push_back({"I15",
                        history.keys[operation.key],
                        both ? "was granted under another fence than the rest"
                             : "was answered otherwise than the rest",
                        {other.line, operation.line}});
  }
}

std::vector<const Operation*> by_key(const History& history) {
  std::vector<const Operation*> operations;
  operations.reserve(history.operations.size());
  for (const Operation& operation : history.operations) {
    if (operation.function <= Function::stats) operations.push_back(&operation);
  }
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation* a, const Operation* b) {
                     return a->key != b->key ? a->key < b->key : a->kind < b->kind;
                   });
  return operations;
}

}  // namespace

std::vector<Finding> check(const History& history) {
  std::vector<Finding> findings;
  const Timeline timeline(history);
  check_failures(history, timeline, findings);
  check_epochs(history, timeline, findings);
  check_stops(history, timeline, findings);
  check_sets(history, findings);
  SetTries tries;
  SetGrants grants;
  const std::vector<const Operation*> operations = by_key(history);
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last = std::find_if(first, operations.end(), [&](const Operation* operation) {
      return operation->key != (*first)->key || operation->kind != (*first)->kind;
    });
    const KeyHistory key(timeline, history.keys[(*first)->key], std::span(first, last), findings);
    check_order(key, findings);
    check_exclusion(key, findings);
    check_conservation(key, tries, findings);
    note_set_grants(key, grants);
    first = last;
  }
  check_tries_for_sets(tries, findings);
  check_set_grants(grants, findings);
  return findings;
}

}  // namespace lockd::histories
