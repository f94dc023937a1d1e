// The simulation can fail: faults planted in it are found, each by what it breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "crash/violation.h"
#include "ha/cluster_world.h"
#include "ha/tampered_client.h"
#include "journal/format.h"
#include "replication/records.h"

namespace lockd::ha_test {
namespace {

constexpr std::uint64_t kSeedsMax = 30;
constexpr std::uint64_t kOperationsEach = 100'000;

constexpr Duration kDetectsDiffer = std::chrono::seconds(2);

const EtcdKeys kKeys("sim");

bool writes(const etcd::Txn& txn, const std::string& key) {
  return std::any_of(txn.then.begin(), txn.then.end(), [&](const etcd::Operation& operation) {
    return operation.type == etcd::Operation::Type::put && operation.key == key;
  });
}

void drop_compare(etcd::Txn& txn, const std::string& key) {
  std::erase_if(txn.compare, [&](const etcd::Compare& compare) { return compare.key == key; });
}

// Of the leader whose guard it has.
etcd::Revision epoch_of(const etcd::Txn& txn) {
  return std::get<etcd::Revision>(txn.compare.front().is);
}

// Runs seed after seed until something is violated, and returns what.
std::string first_violation(WorldOptions options) {
  for (options.seed = 1; options.seed <= kSeedsMax; ++options.seed) {
    options.operations = kOperationsEach;
    try {
      ClusterWorld(options).run();
    } catch (const crash::Violation& violation) {
      std::cout << "seed " << options.seed << ": " << violation.what() << std::endl;
      const std::string what = violation.what();
      return what.substr(0, what.find(':'));
    }
  }
  return "nothing";
}

// Every node has the fault.
std::string first_violation(const Hooks& hooks, const etcd::ModelFaults& faults = {},
                            Duration detect_max = {}) {
  WorldOptions options{.detect_max = detect_max, .faults = faults};
  options.tamper = [&](std::uint64_t) {
    return [&](std::unique_ptr<etcd::Client> honest) -> std::unique_ptr<etcd::Client> {
      return std::make_unique<TamperedClient>(std::move(honest), hooks);
    };
  };
  return first_violation(options);
}

TEST(HaPlantedFaults, AnHonestClientIsNotToBlame) {
  WorldOptions options{.operations = kOperationsEach};
  options.tamper = [](std::uint64_t) {
    return [](std::unique_ptr<etcd::Client> honest) -> std::unique_ptr<etcd::Client> {
      return std::make_unique<TamperedClient>(std::move(honest), Hooks{});
    };
  };
  ClusterWorld(options).run();
}

TEST(HaPlantedFaults, AnAppendWithoutTheLeadersGuard) {
  EXPECT_EQ(first_violation({.asked =
                                 [](etcd::Txn& txn) {
                                   if (writes(txn, kKeys.head)) drop_compare(txn, kKeys.leader);
                                 }}),
            "deposed-is-final");
}

TEST(HaPlantedFaults, AResendThatDoesNotLookAtTheHead) {
  EXPECT_EQ(first_violation({.asked =
                                 [](etcd::Txn& txn) {
                                   if (writes(txn, kKeys.head)) drop_compare(txn, kKeys.head);
                                 }}),
            "one-chain");
}

TEST(HaPlantedFaults, ABaseThatMayMoveBack) {
  EXPECT_EQ(first_violation({.asked = [](etcd::Txn& txn) { drop_compare(txn, kKeys.base); }},
                            {.request_twice = 1000}),
            "truth-is-kept");
}

TEST(HaPlantedFaults, AnElectionWithoutLooking) {
  EXPECT_EQ(first_violation({.asked =
                                 [](etcd::Txn& txn) {
                                   if (writes(txn, kKeys.leader)) txn.compare.clear();
                                 }}),
            "answers-lead");
}

TEST(HaPlantedFaults, AStandbyThatSkipsAnEvent) {
  const auto skip = [](etcd::Change& change) {
    BatchHeader header;
    std::string_view payload;
    if (change.erased || !kKeys.batch_id_of(change.entry.key)) return;
    if (!open(change.entry.value, &header, &payload) || payload.empty()) return;
    // The first event becomes one that says nothing, of the same length.
    std::string_view rest = payload;
    Event event{};
    if (!take_event(rest, &event) || event.type != Event::Type::granted) return;
    std::string bytes = change.entry.value;
    const std::size_t size = payload.size() - rest.size();
    std::string filler;
    while (filler.size() + 2 <= size) filler += {'\x05', '\0'};  // fence_floor 0
    if (filler.size() != size) return;
    bytes.replace(kBatchHeaderSize, size, filler);
    seal(header, bytes);
    change.entry.value = bytes;
  };
  EXPECT_EQ(first_violation({.told = skip}), "replay-equals");
}

// Of a batch, as it is told: no lease has more left than it was granted for.
void shorten_leases(std::string& value) {
  BatchHeader header;
  std::string_view payload;
  if (!open(value, &header, &payload)) return;
  std::string bytes(kBatchHeaderSize, '\0');
  Event event{};
  while (take_event(payload, &event)) {
    event.expires_at = std::min(event.expires_at, header.made_at + event.ttl);
    char record[kRecordSizeMax];
    bytes.append(record, encode(event, record));
  }
  seal(header, bytes);
  value = bytes;
}

TEST(HaPlantedFaults, AStandbyThatKnowsOfNoLongerRenewals) {
  const auto told = [](etcd::Change& change) {
    if (!change.erased && kKeys.batch_id_of(change.entry.key)) shorten_leases(change.entry.value);
  };
  const auto answered = [](const etcd::Txn&, etcd::Answer& answer) {
    for (auto& found : answer.found) {
      for (etcd::Entry& entry : found) {
        if (kKeys.batch_id_of(entry.key)) shorten_leases(entry.value);
      }
    }
  };
  EXPECT_EQ(first_violation({.answered = answered, .told = told}), "lease-honoured");
}

TEST(HaPlantedFaults, AnUnknownAnswerThatIsTakenForSuccess) {
  EXPECT_EQ(first_violation({.answered =
                                 [](const etcd::Txn& txn, etcd::Answer& answer) {
                                   if (answer.status != etcd::Answer::Status::unknown) return;
                                   if (!writes(txn, kKeys.head)) return;
                                   answer.status = etcd::Answer::Status::done;
                                   answer.succeeded = true;
                                   answer.revision = epoch_of(txn);
                                 }}),
            "answers-lead");
}

// That an earlier try was successful is no proof of leading when the last one was sent.
TEST(HaPlantedFaults, AResolvedAppendThatCountsAsNews) {
  const auto lie = [](const etcd::Txn& txn, etcd::Answer& answer) {
    if (!writes(txn, kKeys.head) || answer.succeeded || answer.found.size() != 2) return;
    const auto& head = answer.found.back();
    answer.succeeded = !head.empty() && head.front().value == txn.then.back().value;
  };
  EXPECT_EQ(first_violation({.answered = lie}, {.answer_lost = 1000}), "answers-lead");
}

// Of a leader's record: that it counts on no more than the shortest detect.
void shorten_detect(std::string& record) {
  constexpr std::string_view kName = "etcd-detect=";
  const std::size_t at = record.find(kName);
  if (at == std::string::npos) return;
  const std::size_t value = at + kName.size();
  record.replace(value, record.find('\n', value) - value, "0.3");
}

// A leader that was stopped, and goes on as if no time had passed.
TEST(HaPlantedFaults, ALeaderThatIsCertainForTooLong) {
  const auto lie = [](etcd::Txn& txn) {
    for (etcd::Operation& operation : txn.then) {
      if (operation.key == kKeys.leader) shorten_detect(operation.value);
    }
  };
  EXPECT_EQ(first_violation({.asked = lie}, {}, kDetectsDiffer), "answers-lead");
}

// However long the leader counts on.
TEST(HaPlantedFaults, AStandbyThatWaitsForTooShort) {
  const auto told = [](etcd::Change& change) {
    if (change.entry.key == kKeys.leader) shorten_detect(change.entry.value);
  };
  const auto answered = [](const etcd::Txn&, etcd::Answer& answer) {
    for (auto& found : answer.found) {
      for (etcd::Entry& entry : found) {
        if (entry.key == kKeys.leader) shorten_detect(entry.value);
      }
    }
  };
  // Else nobody could lead: the guard has the record as it was told.
  const auto asked = [](etcd::Txn& txn) {
    std::erase_if(txn.compare, [](const etcd::Compare& compare) {
      return compare.key == kKeys.leader && std::holds_alternative<std::string>(compare.is);
    });
  };
  EXPECT_EQ(
      first_violation({.asked = asked, .answered = answered, .told = told}, {}, kDetectsDiffer),
      "answers-lead");
}

}  // namespace
}  // namespace lockd::ha_test
