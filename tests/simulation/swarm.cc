#include "simulation/swarm.h"

#include <chrono>

namespace lockd::simulation {
namespace {

using namespace std::chrono_literals;

// Left out in so many of a hundred seeds.
std::uint32_t weight(Chance& chance, std::uint32_t most, std::uint32_t left_out_percent = 40) {
  if (chance.percent(left_out_percent)) return 0;
  return static_cast<std::uint32_t>(chance.between(1, most));
}

}  // namespace

Swarm Swarm::draw(Chance& chance) {
  Swarm swarm;
  const auto number = [&](std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(chance.between(least, most));
  };

  swarm.clients = number(2, 12);
  swarm.http_percent = chance.percent(40) ? 0 : number(5, 90);
  swarm.keys = number(1, 5);
  swarm.limit = number(1, 4);
  swarm.pipeline = chance.percent(40) ? number(2, 6) : 1;

  Options& options = swarm.options;
  options.max_locks = chance.percent(20) ? number(1, 4) : 1024;
  options.max_waiters = chance.percent(20) ? number(1, 3) : 0;
  options.dflockd_letter = chance.percent(50);
  options.max_holds = chance.percent(15) ? number(2, 8) : 0;
  options.max_holds_per_client = chance.percent(15) ? number(1, 4) : 0;
  options.max_lease_ttl = std::chrono::seconds(chance.percent(15) ? number(1, 4) : 0);
  if (chance.percent(15)) options.max_set_wait = std::chrono::milliseconds(number(100, 2000));
  options.auto_release_on_disconnect = !chance.percent(25);
  options.default_lease_ttl = 4s;
  options.detailed_errors = chance.percent(50);
  options.gc_interval = 1s;
  options.gc_max_idle = std::chrono::seconds(number(1, 5));
  swarm.shards = 1U << chance.below(3);
  swarm.journal = chance.percent(75);
  if (swarm.journal && chance.percent(20)) swarm.sync_interval = 20ms;

  swarm.acquire = number(5, 20);
  swarm.enqueue = weight(chance, 10);
  swarm.semaphore_percent = chance.percent(40) ? 0 : number(10, 90);
  swarm.shared_percent = chance.percent(30) ? 0 : number(10, 90);
  swarm.several_percent = chance.percent(30) ? 0 : number(10, 90);
  swarm.secret_percent = chance.percent(30) ? 0 : number(10, 90);
  swarm.sets = weight(chance, 15, 25);
  swarm.renew = weight(chance, 20, 20);
  swarm.release = number(3, 25);
  swarm.signal = weight(chance, 4, 70);
  swarm.lie = weight(chance, 4);
  swarm.leave = weight(chance, 3);
  swarm.think_max = chance.percent(50) ? 2ms : 200ms;
  swarm.lease_s_max = number(1, 6);
  swarm.wait_s_max = number(1, 5);

  swarm.delay_max = chance.percent(30) ? 0ms : chance.percent(70) ? 1ms : 300ms;
  swarm.splits = chance.percent(25);

  if (chance.percent(15)) return swarm;  // nothing goes wrong
  swarm.fault_every =
      std::chrono::milliseconds(chance.percent(30) ? number(50, 1000) : number(1000, 30'000));
  swarm.cut = weight(chance, 10);
  swarm.freeze = weight(chance, 5);
  swarm.stall = weight(chance, 3);
  swarm.kill = weight(chance, 5);
  swarm.stop = weight(chance, 2);
  if (!swarm.journal) return swarm;  // fences go by the wall clock then, and go back with it
  swarm.wall_jump = weight(chance, 2, 75);
  swarm.kill_in_call = weight(chance, 5);
  swarm.power_failure = weight(chance, 5);
  swarm.disk_error = weight(chance, 2, 70);
  swarm.disk_full = weight(chance, 2, 70);
  swarm.full_start = weight(chance, 2, 70);
  swarm.no_files = weight(chance, 2, 70);
  return swarm;
}

std::string Swarm::describe() const {
  std::string text;
  const auto add = [&](std::string_view name, std::uint64_t value) {
    if (value != 0) text += " " + std::string(name) + "=" + std::to_string(value);
  };
  add("clients", clients);
  add("http%", http_percent);
  add("keys", keys);
  add("limit", limit);
  add("pipeline", pipeline);
  add("max_locks", options.max_locks);
  add("max_waiters", options.max_waiters);
  add("dflockd_letter", options.dflockd_letter ? 1 : 0);
  add("max_holds", options.max_holds);
  add("max_holds_per_client", options.max_holds_per_client);
  add("max_lease_s", static_cast<std::uint64_t>(options.max_lease_ttl / 1s));
  add("max_set_wait_ms", static_cast<std::uint64_t>(options.max_set_wait / 1ms));
  add("auto_release", options.auto_release_on_disconnect ? 1 : 0);
  add("shards", shards);
  add("journal", journal ? 1 : 0);
  add("sync_interval_ms", static_cast<std::uint64_t>(sync_interval / 1ms));
  add("acquire", acquire);
  add("enqueue", enqueue);
  add("semaphore%", semaphore_percent);
  add("shared%", shared_percent);
  add("several%", several_percent);
  add("secret%", secret_percent);
  add("sets", sets);
  add("renew", renew);
  add("release", release);
  add("signal", signal);
  add("lie", lie);
  add("leave", leave);
  add("think_ms", static_cast<std::uint64_t>(think_max / 1ms));
  add("delay_ms", static_cast<std::uint64_t>(delay_max / 1ms));
  add("splits", splits ? 1 : 0);
  add("fault_every_ms", static_cast<std::uint64_t>(fault_every / 1ms));
  add("cut", cut);
  add("freeze", freeze);
  add("stall", stall);
  add("kill", kill);
  add("kill_in_call", kill_in_call);
  add("power_failure", power_failure);
  add("stop", stop);
  add("disk_error", disk_error);
  add("disk_full", disk_full);
  add("full_start", full_start);
  add("no_files", no_files);
  add("wall_jump", wall_jump);
  return text;
}

}  // namespace lockd::simulation
