#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_text.h"
#include "server/reports/client_json.h"
#include "server/reports/report.h"
#include "server/server_context.h"

namespace lockd {
namespace {

constexpr std::size_t kStatsKeysPerStep = 256;
constexpr std::size_t kStepsPerPiece = kKeysPerSlice / kStatsKeysPerStep;

// `clients` is null where nobody is shown whose it is.
std::string lock_json(const KeyStatus& key, const ClientRegistry* clients) {
  const HoldStatus hold = key.holds.empty() ? HoldStatus{} : key.holds[0];
  JsonObject json;
  json.add("key", key.key);
  json.add("owner_conn_id", hold.session);
  json.add("lease_expires_in_s", seconds(hold.remaining));
  json.add("waiters", key.waiters);
  if (hold.mode == Mode::shared) {
    json.add("mode", mode_name(hold.mode));
    json.add("holders", key.holders);
  }
  if (clients == nullptr || key.holds.empty()) return json.finish();
  json.add("holder", holder_text(hold, *clients));
  add_client(json, hold, clients);
  return json.finish();
}

std::string semaphore_json(const KeyStatus& key) {
  JsonObject json;
  json.add("key", key.key);
  json.add("limit", key.limit);
  json.add("holders", key.holders);
  json.add("waiters", key.waiters);
  if (key.permits > key.holders) json.add("permits", key.permits);
  return json.finish();
}

std::string idle_json(const KeyStatus& key) {
  JsonObject json;
  json.add("key", key.key);
  json.add("idle_s", seconds(key.idle));
  return json.finish();
}

// The stats document of the line protocol: one line of compact JSON, valid for any key. Over HTTP a
// lock has its holder besides.
//
// It has an array for each sort of key, and the keys come in no order. One walk serves all arrays
// as long as little has been gathered for those whose time is yet to come; for an array with much
// the walk is taken up again from where its gathering stopped.
class StatsReport final : public ReportRest, public std::enable_shared_from_this<StatsReport> {
 public:
  StatsReport(ServerContext& shared, bool shows_clients, PermitPtr confined_to)
      : shared_(shared),
        clients_(shows_clients ? &shared.clients : nullptr),
        confined_to_(std::move(confined_to)) {}

  ReportPiece next() override {
    std::string text;
    if (!std::exchange(has_begun_, true)) {
      text += R"({"connections":)";
      append_json_number(text, shared_.admission.connections());
    }
    for (std::size_t step = 0; step < kStepsPerPiece && text.size() < kStatsPiece; ++step) {
      if (sort_ < arrays_.size()) {
        add_keys(text);
      } else if (!channels_.place.done) {
        add_channels(text);
      } else {
        add_end(text);
        return {std::move(text), position_};
      }
    }
    return {std::move(text), position_, shared_from_this()};
  }

 private:
  enum Sort : std::uint8_t { lock, semaphore, idle_lock, idle_semaphore };

  struct Array {
    std::string_view name;
    std::string gathered{};  // entries that are not in a piece yet
    ListCursor place{};      // of the walk: what comes before it was gathered
    bool has_begun = false;
    bool has_entries = false;

    void add(std::string_view json) {
      if (std::exchange(has_entries, true)) gathered += ',';
      gathered += json;
    }
    // To a piece.
    void hand_over(std::string& text) {
      if (!std::exchange(has_begun, true)) ((text += ",\"") += name) += "\":[";
      text += std::exchange(gathered, {});
    }
  };

  // None: it is free, and the first of its queue waits for other keys too.
  static std::optional<Sort> sort_of(const KeyStatus& key) {
    const bool is_lock = key.kind == Kind::lock;
    if (key.holders > 0) return is_lock ? lock : semaphore;
    if (key.waiters > 0) return {};
    return is_lock ? idle_lock : idle_semaphore;
  }
  std::string entry(Sort sort, const KeyStatus& key) const {
    if (sort == lock) return lock_json(key, clients_);
    return sort == semaphore ? semaphore_json(key) : idle_json(key);
  }

  void add_keys(std::string& text) {
    Array& array = arrays_[sort_];
    array.hand_over(text);
    if (!array.place.done) return walk(array.place);
    text += ']';
    ++sort_;
  }

  void walk(const ListCursor from) {
    std::array<bool, 4> gathers{};
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      gathers[i] = arrays_[i].place == from && arrays_[i].gathered.size() < kStatsPiece;
    }
    ListCursor place = from;
    const auto visit = [&](const KeyStatus& key) {
      if (confined_to_ != nullptr && !confined_to_->may_touch(key.key)) return;
      const std::optional<Sort> sort = sort_of(key);
      if (sort && gathers[*sort]) arrays_[*sort].add(entry(*sort, key));
    };
    position_ = std::max(position_, shared_.engine.list_some(place, kStatsKeysPerStep, visit, 1));
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      if (gathers[i]) arrays_[i].place = place;
    }
  }

  void add_channels(std::string& text) {
    const auto some = shared_.hub.list_some(last_channel_);
    for (const AudienceStatus& audience : some) {
      if (confined_to_ != nullptr && !confined_to_->may_listen(audience.pattern)) continue;
      channels_.add(audience_json(audience));
    }
    channels_.hand_over(text);
    channels_.place.done = some.empty();
    if (some.empty()) {
      text += ']';
    } else {
      last_channel_ = some.back();
    }
  }

  void add_end(std::string& text) {
    if (shared_.cluster != nullptr) (text += R"(,"cluster":)") += cluster_json(shared_);
    text += '}';
  }

  ServerContext& shared_;
  const ClientRegistry* const clients_;
  const PermitPtr confined_to_;
  bool has_begun_ = false;
  std::size_t sort_ = 0;  // whose array is being written
  std::array<Array, 4> arrays_{{{"locks"}, {"semaphores"}, {"idle_locks"}, {"idle_semaphores"}}};
  Array channels_{"signal_channels"};
  AudienceStatus last_channel_;
  Position position_ = 0;
};

}  // namespace

std::shared_ptr<ReportRest> stats_report(ServerContext& shared, bool shows_clients,
                                         PermitPtr confined_to) {
  return std::make_shared<StatsReport>(shared, shows_clients, std::move(confined_to));
}

}  // namespace lockd
