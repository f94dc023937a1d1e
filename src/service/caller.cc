#include "service/caller.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"

namespace lockd {
namespace {

// The names of the call that a restricted client may not use freely.
template <typename Check>
bool may_use_names(const Call& call, Check may_touch, auto may_listen) {
  const auto all = [&](const KeyItems& keys) {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const KeyItem& item) { return may_touch(item.key); });
  };
  return std::visit(Overloaded{
                        [&](const Acquire& c) { return all(c.keys); },
                        [&](const Enqueue& c) { return may_touch(c.key.key); },
                        [&](const AwaitTurn& c) { return may_touch(c.key); },
                        [&](const Renew& c) { return all(c.hold.keys); },
                        [&](const Release& c) { return all(c.hold.keys); },
                        [&](const ReadFence& c) { return may_touch(c.key); },
                        [&](const Publish& c) { return may_touch(c.channel); },
                        [&](const Listen& c) { return may_listen(c.pattern); },
                        [&](const Unlisten& c) { return may_listen(c.pattern); },
                        [&](const ReadReport& c) {
                          return c.report->keys.key.empty() || may_touch(c.report->keys.key);
                        },
                        [&](const Revoke& c) { return may_touch(c.key); },
                        [&](const Resize& c) { return may_touch(c.key); },
                        [](const auto&) { return true; },
                    },
                    call);
}

}  // namespace

Caller::Caller(SessionContext& context, SessionId id, Peer peer)
    : context_(context),
      id_(id),
      peer_(std::move(peer)),
      permit_(peer_.is_forwarded() ? context.access.find_principal(peer_, wall_time())
                                   : context.access.permit_for(peer_, false)),
      generation_(context.access.generation()) {}

Rejected Caller::rejection_of(Operation operation) const {
  if (is_too_late(operation)) return reject(Rejected::Reason::draining);
  const OperationRule rule = rule_of(operation);
  const bool may = permit_->may(rule.right);
  return reject(
      Rejected::Reason::denied,
      may ? permit_->is_confined_to() + "; this is about everything" : permit_->lacks(rule.right));
}

std::optional<Rejected> Caller::check_names(const Call& call) const {
  if (!permit_->is_confined()) return {};
  const bool may = may_use_names(
      call, [this](std::string_view name) { return permit_->may_touch(name); },
      [this](std::string_view pattern) { return permit_->may_listen(pattern); });
  if (may) return {};
  return reject(Rejected::Reason::denied, permit_->is_confined_to());
}

void Caller::set_permit(const PermitPtr& permit) {
  // Counting the owners of a permit is shared between threads, so it is not done for nothing.
  if (permit_ == permit) return;
  const bool is_renamed = permit_->name != permit->name;
  permit_ = permit;
  if (is_renamed) context_.clients.authenticate(id_, permit->name);
}

bool Caller::renew_permit(bool is_pushed_to) {
  const std::uint64_t generation = context_.access.generation();
  if (generation == generation_) return true;
  generation_ = generation;
  const PermitPtr current = peer_.is_forwarded()
                                ? context_.access.find_principal(peer_, wall_time())
                                : context_.access.current(permit_, wall_time());
  if (current == nullptr || (is_pushed_to && !current->hears_all_of(*permit_))) return false;
  set_permit(current);
  return true;
}

std::string Caller::admin_name() const {
  const std::string from = permit_->name + " from " + peer_.address;
  return permit_->name.empty() || from.size() > kHolderSizeMax ? peer_.address : from;
}

}  // namespace lockd
