#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/json_text.h"
#include "server/reports/client_json.h"
#include "server/reports/report.h"
#include "server/server_context.h"

namespace lockd {
namespace {

constexpr std::size_t kClientsPerStep = 256;

// One page, from as many slices as the walk takes.
class ClientListing final : public ReportRest, public std::enable_shared_from_this<ClientListing> {
 public:
  ClientListing(ServerContext& shared, const ClientQuery& query)
      : shared_(shared), query_(query), last_(query.after) {}

  ReportPiece next() override {
    for (std::size_t visited = 0; visited < kKeysPerSlice; visited += kClientsPerStep) {
      if (!is_whole_) list_some();
      if (is_whole_) return {json(), position_};
    }
    return {"", position_, shared_from_this()};
  }

 private:
  void list_some() {
    const auto some = shared_.clients.list_some(last_, kClientsPerStep);
    is_whole_ = some.empty();
    is_last_page_ = some.empty();
    for (const ClientStatus& client : some) {
      if (count_ == query_.clients_max) {
        is_whole_ = true;
        return;
      }
      last_ = client.id;
      if (matches(client)) add(client);
    }
  }

  bool matches(const ClientStatus& client) const {
    if (query_.prefix.empty()) return true;
    return client.client != nullptr && client.client->name.starts_with(query_.prefix);
  }

  void add(const ClientStatus& client) {
    const Owned owned = shared_.engine.owned(client.id);
    position_ = std::max(position_, owned.position);
    JsonObject json = client_json(client);
    json.add("connected_ms", whole_ms(client.connected));
    json.add("idle_ms", whole_ms(client.idle));
    json.add("holds", owned.holds);
    json.add("places", owned.places);
    json.add("subscriptions", shared_.hub.count({client.mailbox, client.id}));
    json.add("unsent_bytes", client.unsent_bytes);
    clients_.add_json(json.finish());
    ++count_;
  }

  std::string json() {
    JsonObject json;
    json.add_json("clients", clients_.finish());
    if (!is_last_page_) json.add("next", std::to_string(last_));
    return json.finish();
  }

  ServerContext& shared_;
  const ClientQuery query_;
  SessionId last_;  // that was looked at
  JsonArray clients_;
  std::size_t count_ = 0;
  bool is_whole_ = false;
  bool is_last_page_ = false;
  Position position_ = 0;
};

}  // namespace

std::shared_ptr<ReportRest> client_listing(ServerContext& shared, const ClientQuery& query) {
  return std::make_shared<ClientListing>(shared, query);
}

}  // namespace lockd
