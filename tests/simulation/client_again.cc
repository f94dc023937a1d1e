// What a client asks for by a secret that it chose, and what follows when it is asked for again.
//
// Whoever asks by the secret of a hold that is in force gets that hold. It then ends with the
// latest of the connections that asked: so one that asked on another is certain of nothing, unless
// the latest was told of the hold too.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "simulation/client.h"

namespace lockd::simulation {

// The word that says so; nothing when it does without.
std::string Client::choose_secret(Request& request) {
  const auto place = enqueued_.find({request.key.kind, request.key.number});
  const bool has_place = request.what == Asked::enqueue && place != enqueued_.end();
  Acquisition* acquisition = nullptr;
  if (has_place) {
    acquisition = acquisitions_.find(request.key, place->second.secret);
  } else if (!chance_.percent(swarm_.secret_percent)) {
    return {};
  } else if (chance_.percent(50)) {
    acquisition = pick_again(request.key);
  }
  if (acquisition == nullptr) {
    acquisition = &acquisitions_.add(request.key, new_secret(), number_);
  } else {
    ask_again(request, *acquisition);
  }
  note_asked(request, *acquisition);
  return " as=" + request.secret;
}

std::string Client::new_secret() {
  char secret[17];
  std::snprintf(secret, sizeof secret, "%016llx", static_cast<unsigned long long>(chance_.next()));
  return secret;
}

void Client::note_asked(Request& request, Acquisition& acquisition) {
  if (std::exchange(acquisition.is_anew, false)) {
    acquisition.largest_told = promises_.largest_told(request.key);
    acquisition.ttl_min = Duration::max();
    acquisition.ttl_max = Duration::zero();
    acquisition.terms.clear();
  }
  request.secret = acquisition.secret;
  acquisition.terms.push_back(request.terms);
  acquisition.ttl_min = std::min(acquisition.ttl_min, request.ttl);
  acquisition.ttl_max = std::max(acquisition.ttl_max, request.ttl);
  if (!acquisition.was_asked_on(wire_->id)) acquisition.connections.push_back(wire_->id);
}

// While something is on its way that may end or move the hold, nobody could say what should become
// of it.
bool Client::may_ask_again(Key key, std::string_view secret) {
  const Acquisition* acquisition = acquisitions_.find(key, secret);
  if (acquisition == nullptr || acquisition->is_retired) return false;
  const Known* known = promises_.find_by_secret(key, acquisition->secret);
  return known == nullptr || !known->in_question;
}

// Its own, or of another client.
Acquisition* Client::pick_again(Key key) {
  std::vector<Acquisition*> some = acquisitions_.recent(key);
  const bool of_others = chance_.percent(30);
  std::erase_if(some, [&](const Acquisition* each) {
    return (each->client != number_ && !of_others) || !may_ask_again(key, each->secret);
  });
  return some.empty() ? nullptr : some[chance_.below(some.size())];
}

void Client::ask_again(Request& request, const Acquisition& acquisition) {
  if (chance_.percent(85)) request.terms = acquisition.terms.back();
  const Known* known = promises_.find_by_secret(request.key, acquisition.secret);
  if (known != nullptr) put_in_question(request, *known);
}

// A renewal or a release names the token, which ends with the secret.
Acquisition* Client::acquisition_of(const Request& request) {
  return acquisitions_.find(request.key, request.secret.empty() ? request.holder : request.secret);
}

// Whether another connection, which came later, may have what this one asked for.
bool Client::may_be_passed_on(const Request& request) {
  const Acquisition* acquisition = acquisition_of(request);
  return acquisition != nullptr && acquisition->newest() > wire_->id;
}

// It was answered, or never will be.
void Client::settle(const Request& request, bool is_lost) {
  Acquisition* acquisition = acquisition_of(request);
  if (acquisition == nullptr) return;
  if (request.secret.empty()) {
    acquisition->is_retired |= is_lost;
    return;
  }
  --acquisition->on_their_way;
  acquisition->may_come_late |= is_lost;
}

// After a release that was told, whoever asks by the same secret asks anew; unless a power failure,
// or a request that comes late, may bring back what was over.
void Client::end_acquisition(const Request& request) {
  Acquisition* acquisition = acquisition_of(request);
  if (acquisition == nullptr) return;
  const bool may_come_back = acquisition->may_come_late || swarm_.wall_jump > 0 ||
                             swarm_.sync_interval != Duration::zero();
  (may_come_back ? acquisition->is_retired : acquisition->is_anew) = true;
}

}  // namespace lockd::simulation
