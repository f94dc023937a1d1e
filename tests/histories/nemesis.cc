#include "histories/nemesis.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace lockd::histories {
namespace {

constexpr std::int64_t kHour = 3600;

}  // namespace

Nemesis::Nemesis(Recording& recording, Victims victims, std::uint64_t seed)
    : recording_(recording), victims_(std::move(victims)), random_(seed) {
  add_blows_to_servers();
  if (victims_.processes.front()->has_faults()) add_blows_to_disks_and_clocks();
  add_blows_to_network_and_clients();
}

void Nemesis::strike() {
  if (next_ % blows_.size() == 0) std::shuffle(blows_.begin(), blows_.end(), random_);
  blows_[next_++ % blows_.size()]();
}

void Nemesis::heal() {
  for (ProcessUnderTest* process : victims_.processes) {
    process->faults().full = process->faults().halves = process->faults().slow_us = 0;
  }
  pause_ms(2500, 2500);  // until the last stall in the network is over
  recording_.note_heal();
}

void Nemesis::add_blows_to_servers() {
  blows_.emplace_back([this] {
    ProcessUnderTest& victim = process();
    end_life("kill9", victim, [&] { victim.kill(); });
  });
  blows_.emplace_back([this] {
    ServerUnderTest& victim = subject();
    end_life("term", victim, [&] { victim.stop(); });
  });
  blows_.emplace_back([this] { drain(); });
  blows_.emplace_back([this] { withhold_descriptors(); });
  blows_.emplace_back([this] {
    ProcessUnderTest& victim = process();
    const Instant begun = now();
    victim.freeze();
    pause_ms(50, 1200);
    victim.thaw();
    recording_.note_fault(kStop, victim.settings().number, victim.place().life, begun, now());
  });
}

void Nemesis::end_life(std::string_view name, ServerUnderTest& subject,
                       const std::function<void()>& how) {
  const std::uint16_t number = subject.settings().number;
  const std::uint32_t life = subject.place().life;
  const Instant begun = now();
  how();
  recording_.note_fault(name, number, life, begun, now());
  if (random_() % 3 == 0) pause_ms(10, 300);
  subject.start();
  recording_.note_fault(kRestart, number, life + 1, begun, now());
}

// Most clients go on renewing what they hold, some of them past the time that the server has.
void Nemesis::drain() {
  ProcessUnderTest& victim = process();
  end_life("drain", victim, [&] {
    victims_.clients->keep(victim.settings().number, 1, between(kSecond / 5, 3 * kSecond / 2));
    victims_.clients->keep(victim.settings().number, 4, 0);
    pause_ms(50, 50);
    victim.ask_to_stop();
    victim.await_end();
  });
}

void Nemesis::add_blows_to_disks_and_clocks() {
  blows_.emplace_back([this] { fail_sync(); });
  blows_.emplace_back([this] { disturb("enospc", &LiveFaults::full, 1); });
  blows_.emplace_back([this] { start_on_full_disk(); });
  blows_.emplace_back([this] { fill_disk_for_renewals(); });
  blows_.emplace_back(
      [this] { disturb("slow_disk", &LiveFaults::slow_us, between(1000, 20'000)); });
  blows_.emplace_back([this] { disturb("short_writes", &LiveFaults::halves, 1); });
  blows_.emplace_back([this] {
    ProcessUnderTest& victim = process();
    const Instant begun = now();
    victim.faults().wall_s += between(-1000 * kHour, 1000 * kHour);
    recording_.note_fault("wall_clock", victim.settings().number, victim.place().life, begun,
                          now());
  });
  blows_.emplace_back([this] {
    ProcessUnderTest& victim = process();
    const Instant begun = now();
    victim.faults().boot_ns += between(kSecond / 10, 3 * kSecond);
    recording_.note_fault(kSuspend, victim.settings().number, victim.place().life, begun, now());
  });
  blows_.emplace_back([this] { reboot(); });
}

void Nemesis::disturb(std::string_view name, std::atomic<std::int64_t> LiveFaults::*setting,
                      std::int64_t value) {
  ProcessUnderTest& victim = process();
  const Instant begun = now();
  victim.faults().*setting = value;
  pause_ms(200, 900);
  victim.faults().*setting = 0;
  recording_.note_fault(name, victim.settings().number, victim.place().life, begun, now());
}

void Nemesis::withhold_descriptors() {
  ProcessUnderTest& victim = process();
  const Instant begun = now();
  victim.withhold_descriptors();
  pause_ms(200, 900);
  victim.grant_descriptors();
  recording_.note_fault("no_descriptors", victim.settings().number, victim.place().life, begun,
                        now());
}

// What it holds can be renewed and released all the same.
void Nemesis::start_on_full_disk() {
  ProcessUnderTest& victim = process();
  end_life("full_start", victim, [&] {
    victim.kill();
    victim.faults().full = 1;
  });
  pause_ms(200, 900);
  victim.faults().full = 0;
}

// For so long that what is kept for renewals may come to its end.
void Nemesis::fill_disk_for_renewals() {
  ProcessUnderTest& victim = process();
  const std::uint16_t number = victim.settings().number;
  const Instant begun = now();
  victim.faults().full = 1;
  victims_.clients->keep(number, 1, between(kSecond / 2, 2 * kSecond));
  victims_.clients->keep(number, 4, 0);
  pause_ms(1000, 2500);
  victim.faults().full = 0;
  recording_.note_fault("full_renewals", number, victim.place().life, begun, now());
}

// It must end by itself. From the failure on it may promise nothing.
void Nemesis::fail_sync() {
  ProcessUnderTest& victim = process();
  const std::uint16_t number = victim.settings().number;
  const std::uint32_t life = victim.place().life;
  const Instant begun = now();
  victim.is_about_to_fail();
  victim.faults().fail_sync = 1;
  victim.await_failure();
  victim.faults().fail_sync = 0;
  const Instant failed = victim.faults().failed_at;
  recording_.note_fault(kSyncError, number, life, failed, std::max(failed, now()));
  victim.start();
  recording_.note_fault(kRestart, number, life + 1, begun, now());
}

// Another boot, and a wall clock that never was as far back: no time has passed, for all that the
// server can know. (Had the clock gone ahead, leases would rightly be over.)
void Nemesis::reboot() {
  ProcessUnderTest& victim = process();
  end_life(kReboot, victim, [&] {
    victim.kill();
    victim.reboot();
    victim.faults().wall_s = std::min<std::int64_t>(victim.faults().wall_s, -1000 * kHour) - kHour;
    victim.faults().boot_ns = between(0, 1000 * kSecond);
  });
}

void Nemesis::add_blows_to_network_and_clients() {
  for (std::size_t i = 0; i < ChaosProxy::kFaults; ++i) {
    blows_.emplace_back([this, fault = static_cast<ChaosProxy::LinkFault>(i)] {
      ServerUnderTest& victim = subject();
      const Instant begun = now();
      const Instant lasting = between(kSecond / 10, 2 * kSecond);
      victims_.proxy->inject(fault, victim.settings().number, 2, lasting);
      recording_.note_fault(ChaosProxy::name_of(fault), victim.settings().number,
                            victim.place().life, begun, begun + lasting);
    });
  }
  blows_.emplace_back([this] {
    ServerUnderTest& victim = subject();
    const Instant begun = now();
    const Instant lasting = between(kSecond / 10, 2 * kSecond);
    victims_.clients->pause(victim.settings().number, 3, lasting);
    recording_.note_fault("client_pause", victim.settings().number, victim.place().life, begun,
                          begun + lasting);
  });
  blows_.emplace_back([this] {
    ServerUnderTest& victim = subject();
    const Instant begun = now();
    victims_.clients->kill(victim.settings().number, 4);
    recording_.note_fault("client_kill", victim.settings().number, victim.place().life, begun,
                          now());
  });
}

void Nemesis::pause_ms(std::uint64_t least, std::uint64_t most) {
  const auto ms = between(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

std::int64_t Nemesis::between(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
}

}  // namespace lockd::histories
