#include "core/testing/lock_history.h"

#include <ostream>

namespace lockd {

std::string bad_text(unsigned which) {
  const std::array<std::string, 5> bad = {"", std::string(257, 'x'), "a\x1f", "a\xc3", "\x7f"};
  return bad[which % bad.size()];
}

std::string name_of(unsigned key) {
  if (key >= kBadTexts) return bad_text(key - kBadTexts);
  return key / 2 == 2 ? std::string(256, 'k') : "k" + std::to_string(key / 2);
}

std::uint32_t usual_limit(unsigned key) {
  return kind_of(key) == Kind::lock ? 1 : std::array{2u, 5u, 3u, 1u}[key / 2 % 4];
}

bool is_flawed(const Op& op) {
  const std::uint32_t limit_max = kind_of(op.key) == Kind::lock ? 1 : kLimitMax;
  const bool has_good_terms = op.limit >= 1 && op.limit <= limit_max && op.permits >= 1 &&
                              op.permits <= op.limit &&
                              (kind_of(op.key) == Kind::lock || !op.shared);
  return op.key >= kBadTexts || op.owner >= kBadTexts || op.ttl < 1 || op.wait < 0 ||
         !has_good_terms || (op.verb == Verb::enqueue && op.owner == kNoSession);
}

void showValue(const LockHistory& history, std::ostream& out) {
  const Setup& s = history.setup;
  out << "keys " << s.keys << ", keys_max " << s.keys_max << ", waiters_max " << s.waiters_max
      << ", holds_max " << s.holds_max << ", holds_per_client_max " << s.holds_per_client_max
      << ", ttl_max " << s.ttl_max
      << (s.refuses_tries_at_full_queue ? ", refuses_tries_at_full_queue" : "")
      << (s.keeps_idle_limits ? ", keeps_idle_limits" : "") << ", fences_left " << s.fences_left
      << ", start " << s.start << ", hash_seed " << s.hash_seed;
  for (const Op& op : history.ops) {
    out << "\n  " << kVerbNames[static_cast<std::size_t>(op.verb)] << " key " << op.key << " owner "
        << op.owner << " ttl " << op.ttl << " wait " << op.wait << " limit " << op.limit
        << " permits " << op.permits << (op.shared ? " shared" : "") << " pick " << op.pick
        << " step " << op.step;
  }
}

}  // namespace lockd
