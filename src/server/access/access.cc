#include "server/access/access.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/json_text.h"
#include "base/secret.h"
#include "config/environment.h"
#include "config/values.h"
#include "server/settings/token_file.h"

namespace lockd {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

PermitPtr permit_of(Rights rights) {
  return std::make_shared<const Permit>(Permit{.rights = rights});
}

PermitPtr unless_expired(PermitPtr permit, Access::Time now) {
  return permit != nullptr && permit->has_expired(now) ? nullptr : permit;
}

// A token and a certificate may have one name.
std::string principal_key(std::string_view name, bool is_certificate) {
  return (is_certificate ? "c" : "t") + std::string(name);
}

// Whoever is given `admin` by name takes it from the auth token that all share.
PermitPtr shared_permit(const std::vector<Permit>& permits) {
  const bool is_given = std::any_of(permits.begin(), permits.end(),
                                    [](const Permit& permit) { return permit.may(Right::admin); });
  const Rights rights = is_given ? Rights::all().without(Right::admin) : Rights::all();
  return std::make_shared<const Permit>(Permit{
      .name = std::string(kSharedTokenName), .rights = rights, .proof = Permit::Proof::shared});
}

}  // namespace

bool Access::DigestEqual::operator()(const Sha256& a, const Sha256& b) const {
  return equal_in_constant_time(bytes_of(a), bytes_of(b));
}

Access::Access(const Options& options)
    : options_(options),
      is_asked_for_(!options.secret.empty() || !options.access.empty()),
      looks_at_certificates_(!options.access.empty() && !options.tls_client_ca.empty()),
      nobodys_(permit_of({})),
      everybodys_(permit_of(Rights::all().without(Right::admin))),
      everybodys_here_(permit_of(Rights::all())),
      next_expiry_(kNever) {
  Reading given;
  for (const HashedSecret& token : {options.secret, options.second_secret}) {
    if (!token.empty()) given.shared.push_back(token);
  }
  replace(given, {});
}

// With certificates alone there is none to ask for. Without them it is asked for, also when the
// file has none any more: what is taken out of it opens nothing.
bool Access::asks_for_token() const {
  if (looks_at_certificates_) return has_tokens_.load(std::memory_order_relaxed);
  return is_asked_for_;
}

PermitPtr Access::find(std::string_view shown, Time now) const {
  const std::shared_ptr<const Table> good = table();
  const auto found = good->tokens.find(sha256(shown));
  return found == good->tokens.end() ? nullptr : unless_expired(found->second, now);
}

PermitPtr Access::find(const CertificateNames& certificate, Time now) const {
  const std::shared_ptr<const Table> good = table();
  PermitPtr found;
  const auto look = [&](const std::string& shown) {
    if (found == nullptr) found = unless_expired(find_certificate(*good, shown), now);
  };
  for (const std::string& name : certificate.common_names) look(by_common_name(name));
  for (const std::string& name : certificate.alternative_names) look(by_alternative_name(name));
  return found;
}

const PermitPtr& Access::permit_for(const Peer& peer, bool is_forwarded) const {
  if (is_asked_for_) return nobodys_;
  if (!options_.tls_client_ca.empty()) return everybodys_here_;  // its certificate is its proof
  return peer.is_loopback && !is_forwarded ? everybodys_here_ : everybodys_;
}

PermitPtr Access::find_principal(const Peer& peer, Time now) const {
  if (peer.principal.empty()) return permit_for(peer, false);
  const std::shared_ptr<const Table> good = table();
  const auto found = good->principals.find(principal_key(peer.principal, peer.has_certificate));
  const bool is_good = found != good->principals.end() && !found->second->has_expired(now);
  return is_good ? found->second : std::make_shared<const Permit>(Permit{.name = peer.principal});
}

PermitPtr Access::current(const PermitPtr& permit, Time now) const {
  const std::shared_ptr<const Table> good = table();
  switch (permit->proof) {
    case Permit::Proof::none: return permit;
    case Permit::Proof::shared: return good->shared;
    case Permit::Proof::certificate:
      return unless_expired(find_certificate(*good, permit->shown), now);
    case Permit::Proof::token: break;
  }
  Sha256 digest{};
  std::copy(permit->shown.begin(), permit->shown.end(), digest.begin());
  const auto found = good->tokens.find(digest);
  return found == good->tokens.end() ? nullptr : unless_expired(found->second, now);
}

PermitPtr Access::find_certificate(const Table& table, const std::string& shown) const {
  const auto found = table.certificates.find(shown);
  return found == table.certificates.end() ? nullptr : found->second;
}

// Of several threads that see it one does it.
void Access::look_for_expired(Time now) {
  std::int64_t next = next_expiry_.load(std::memory_order_relaxed);
  if (std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count() < next) return;
  MutexLock lock(mutex_);
  if (next != next_expiry_.load(std::memory_order_relaxed)) return;
  await_next_expiry(*table_, now);
  generation_.fetch_add(1, std::memory_order_release);
}

void Access::await_next_expiry(const Table& table, Time now) {
  std::int64_t next = kNever;
  const auto look = [&](const PermitPtr& permit) {
    if (!permit->expires || permit->has_expired(now)) return;
    next = std::min<std::int64_t>(next, permit->expires->time_since_epoch().count());
  };
  for (const auto& [digest, permit] : table.tokens) look(permit);
  for (const auto& [shown, permit] : table.certificates) look(permit);
  next_expiry_.store(next, std::memory_order_relaxed);
}

Access::Reading Access::read_again() const {
  Reading reading;
  if (!options_.auth_token_file.empty()) {
    read_token_file_again(reading);
  } else if (!options_.secret.empty()) {
    reading.shared = {options_.secret};
  }
  if (!reading.error.empty()) return reading;
  AccessFile file = read_access_file(options_, reading.shared, config::process_environment());
  reading.permits = std::move(file.permits);
  reading.error = std::move(file.error);
  return reading;
}

void Access::read_token_file_again(Reading& reading) const {
  TokenFile file = read_token_file(options_.auth_token_file, config::process_environment());
  reading.shared = {file.tokens.begin(), file.tokens.end()};
  const HashedSecret& given = options_.auth_token;
  if (file.error.empty() && !given.empty() &&
      std::find(reading.shared.begin(), reading.shared.end(), given) == reading.shared.end()) {
    file.error = "it does not hold the auth token of --auth-token: give one of them";
  }
  if (!file.error.empty()) {
    reading.error =
        "--auth-token-file is " + config::in_quotes(options_.auth_token_file) + ": " + file.error;
  }
  if (std::any_of(file.tokens.begin(), file.tokens.end(), is_weak_token)) {
    reading.warning = kWeakToken;
  }
}

void Access::replace(const Reading& reading, Time now) {
  std::shared_ptr<const Table> made = table_of(reading);
  MutexLock lock(mutex_);
  table_ = std::move(made);
  has_tokens_.store(!table_->tokens.empty(), std::memory_order_relaxed);
  await_next_expiry(*table_, now);
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const Access::Table> Access::table_of(const Reading& reading) {
  auto made = std::make_shared<Table>();
  made->shared = shared_permit(reading.permits);
  for (const HashedSecret& token : reading.shared) {
    made->tokens[token.digest()] = made->shared;
    made->principals[principal_key(made->shared->name, false)] = made->shared;
  }
  for (const Permit& permit : reading.permits) {
    auto shared = std::make_shared<const Permit>(permit);
    const bool is_certificate = permit.proof == Permit::Proof::certificate;
    made->principals[principal_key(permit.name, is_certificate)] = shared;
    if (permit.proof == Permit::Proof::certificate) {
      made->certificates[permit.shown] = std::move(shared);
      continue;
    }
    Sha256 digest{};
    std::copy(permit.shown.begin(), permit.shown.end(), digest.begin());
    made->tokens[digest] = std::move(shared);
  }
  return made;
}

std::shared_ptr<const Access::Table> Access::table() const {
  MutexLock lock(mutex_);
  return table_;
}

std::string whoami_json(const Permit& permit, const Peer& peer) {
  JsonArray rights;
  for (const Right right : kRights) {
    if (permit.may(right)) append_json_string(rights.next(), word_of(right));
  }
  JsonObject json;
  if (!permit.name.empty()) json.add("name", permit.name);
  json.add_json("rights", rights.finish());
  if (permit.is_confined()) {
    JsonArray keys;
    for (const std::string& prefix : permit.prefixes) append_json_string(keys.next(), prefix);
    json.add_json("keys", keys.finish());
  }
  if (permit.expires) json.add("expires", expiry_text(*permit.expires));
  json.add("peer", peer.address);
  json.add("tls", peer.is_tls);
  return json.finish();
}

}  // namespace lockd
