#include "histories/caller.h"

#include <optional>
#include <utility>

namespace lockd::histories {
namespace {

Result result_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return Result::ok;
    case Outcome::held:
    case Outcome::timeout: return Result::timeout;
    case Outcome::expired:
    case Outcome::stale:
    case Outcome::not_holder: return Result::not_held;
    case Outcome::storage: return Result::storage;
    case Outcome::closed: return Result::draining;
    default: return Result::refused;
  }
}

}  // namespace

Caller::Caller(Recording& recording, HostUnderTest& subject, Plan plan)
    : recording_(recording),
      scribe_(recording.add_scribe()),
      server_(subject),
      plan_(std::move(plan)),
      proc_(recording.new_proc()),
      thread_([this] { run(); }) {}

Caller::~Caller() {
  finish();
  thread_.join();
}

void Caller::run() {
  for (;;) {
    if (finishing_) plan_.finish();
    const std::optional<Request> request = plan_.next();
    if (!request.has_value()) return;
    call(*request);
  }
}

void Caller::call(const Request& request) {
  HostUnderTest::Visit visit(server_);
  Engine* const engine = visit.engine();
  if (engine == nullptr) return plan_.heard(request, {.result = Result::refused, .token = {}});
  Operation operation{.ttl = request.ttl,
                      .timeout = request.timeout,
                      .fence = request.fence,
                      .rid = request.rid,
                      .proc = proc_,
                      .life = visit.life(),
                      .key = request.key,
                      .limit = request.limit,
                      .permits = request.permits,
                      .server = server_.settings().number,
                      .function = request.function,
                      .kind = request.kind,
                      .mode = request.mode,
                      .via = Via::lib};
  operation.call = now();
  const Reply reply =
      request.parts.empty() ? execute(*engine, request) : execute_set(*engine, request);
  operation.ret = now();
  operation.result = reply.result;
  if (reply.fence != 0) operation.fence = reply.fence;
  for (const Operation& one : operations_of(operation, request, reply)) scribe_.note(one);
  plan_.heard(request, reply);
}

Reply Caller::execute(Engine& engine, const Request& request) {
  const std::string holder = holder_of(request.rid);
  const KeyItem item(request.key_name, request.kind, request.mode, request.limit, request.permits);
  const HoldId hold{.keys = item, .holder = holder, .fence = request.fence};
  if (request.function == Function::release) {
    return {.result = result_of(engine.release(hold).outcome), .token = {}};
  }
  const AcquireResult granted = request.function == Function::renew
                                    ? engine.renew(hold, Duration(request.ttl))
                                    : engine.acquire({.keys = item,
                                                      .holder = holder,
                                                      .ttl = Duration(request.ttl),
                                                      .wait = Duration(request.timeout)});
  return {.result = result_of(granted.outcome), .fence = granted ? granted->fence : 0, .token = {}};
}

Reply Caller::execute_set(Engine& engine, const Request& request) {
  const std::string holder = holder_of(request.rid);
  std::vector<KeyItem> items;
  for (const RequestPart& part : request.parts) {
    items.emplace_back(part.key_name, part.kind, part.mode, part.limit, part.permits);
  }
  const HoldId holds{.keys = items, .holder = holder, .fence = request.fence};
  Reply reply{.token = {}};
  if (request.function == Function::release) {
    const ReleaseResult released = engine.release(holds);
    reply.result = result_of(released.outcome);
    for (std::size_t i = 0; i < items.size(); ++i) {
      reply.parts.push_back(released.has_released(i) ? Result::ok : Result::not_held);
    }
    return reply;
  }
  const bool renews = request.function == Function::renew;
  const AcquireResult granted = renews ? engine.renew(holds, Duration(request.ttl))
                                       : engine.acquire({.keys = items,
                                                         .holder = holder,
                                                         .ttl = Duration(request.ttl),
                                                         .wait = Duration(request.timeout)});
  reply.result = result_of(granted.outcome);
  if (granted) reply.fence = granted->fence;
  if (renews && reply.result == Result::not_held) {
    reply.parts.assign(request.parts.size(), Result::refused);
    reply.parts[granted.conflicts.front().item] = Result::not_held;
  }
  return reply;
}

}  // namespace lockd::histories
