#include "histories/checker.h"

#include <algorithm>
#include <span>

#include "histories/key_checks.h"
#include "histories/key_history.h"
#include "histories/timeline.h"

namespace lockd::histories {
namespace {

// I11: what was asked after the storage had failed, and was promised all the same.
void check_failures(const History& history, const Timeline& timeline,
                    std::vector<Violation>& violations) {
  for (const Operation& operation : history.operations) {
    const bool promises = operation.function <= Function::release &&
                          (operation.result == Result::ok || operation.result == Result::queued);
    if (!promises || operation.call <= timeline.failed(operation.server, operation.life)) continue;
    violations.push_back({"I11",
                          history.keys[operation.key],
                          "promised after the server's storage had failed",
                          {operation.line}});
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

std::vector<Violation> check(const History& history) {
  std::vector<Violation> violations;
  const Timeline timeline(history);
  check_failures(history, timeline, violations);
  const std::vector<const Operation*> operations = by_key(history);
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last = std::find_if(first, operations.end(), [&](const Operation* operation) {
      return operation->key != (*first)->key || operation->kind != (*first)->kind;
    });
    const KeyHistory key(timeline, history.keys[(*first)->key], std::span(first, last), violations);
    check_order(key, violations);
    check_exclusion(key, violations);
    check_conservation(key, violations);
    first = last;
  }
  return violations;
}

}  // namespace lockd::histories
