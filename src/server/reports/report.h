// What walks through every key or every counter, and is therefore put together away from the loops.
//
// A report is of any size, and is made piece by piece, each when the peer has taken those before
// it: what a report takes of memory, and of a loop's turn, is bounded. A slice of a walk that has
// come to nothing yet is a piece without text: so is what it takes of the thread's time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockd/engine.h"
#include "lockd/types.h"
#include "server/access/permit.h"

namespace lockd {

struct AudienceStatus;
class ClientRegistry;
class ClusterJournal;
struct Options;
struct ServerContext;

// Which keys a listing has first. But for `none`, the whole table is walked for them, and there is
// no next page.
enum class KeyOrder : std::uint8_t { none, waiters, longest_wait, longest_hold };

// The order of that name: "waiters"; nothing when there is none.
std::optional<KeyOrder> parse_key_order(std::string_view name);

// What to list of the keys. What is empty or 0 chooses nothing.
struct KeyQuery {
  std::string prefix{};
  std::string contains{};
  std::string key{};  // this one only, with so much of its queue
  std::size_t entries_max = 1000;
  // Keys that this one holds or waits for, each with those holds and places alone. A holder as it
  // is shown, or the name that its client gave itself.
  std::string holder{};
  SessionId client_id = 0;
  std::uint32_t keys_max = 100;
  ListCursor from{};
  KeyOrder order = KeyOrder::none;
  bool with_idle = false;

  friend bool operator==(const KeyQuery&, const KeyQuery&) = default;
};

// What to list of the clients.
struct ClientQuery {
  std::string prefix{};  // of their names; empty: those without one too
  std::uint32_t clients_max = 100;
  SessionId after = 0;

  friend bool operator==(const ClientQuery&, const ClientQuery&) = default;
};

// What to tell of what happened.
struct HistoryRequest {
  HistoryQuery of_keys{};  // its `since` is that of below
  std::string event{};     // its name; empty: any
  std::int64_t since_unix_ms = 0;

  friend bool operator==(const HistoryRequest&, const HistoryRequest&) = default;
};

struct ReportPiece;

// The pieces of a report that are still to be made. No call visits more than kKeysPerSlice keys.
inline constexpr std::size_t kKeysPerSlice = 4096;
class ReportRest {
 public:
  virtual ~ReportRest() = default;
  virtual ReportPiece next() = 0;
};

struct ReportRequest {
  enum class What : std::uint8_t { stats, keys, clients, history, overview, metrics };

  What what = What::stats;
  KeyQuery keys{};
  ClientQuery clients{};
  HistoryRequest history{};
  PermitPtr confined_to{};             // null: the asker may see all keys and channels
  bool shows_clients = false;          // in stats: whose a lock is
  std::shared_ptr<ReportRest> rest{};  // not null: the next piece of a report that has begun
  bool refusable = false;              // the asker knows an answer for when too many wait
  bool may_be_gone = false;            // it has closed its side
};

// What was seen, and what that rests on: nobody may be told before it is durable.
struct ReportPiece {
  std::string text;  // possibly nothing yet
  Position position = 0;
  std::shared_ptr<ReportRest> rest{};  // null: that was all
  bool was_refused = false;            // there is none: too many wait
};

inline std::shared_ptr<const ReportPiece> refused_report() {
  return std::make_shared<const ReportPiece>(ReportPiece{.text = {}, .was_refused = true});
}

// Is told of the pieces that its sessions asked for, by any thread.
class ReportReader {
 public:
  virtual void deliver_report(SessionId asker, std::shared_ptr<const ReportPiece> piece) = 0;

 protected:
  ~ReportReader() = default;
};

// The whole report, or its next piece. For the threads that make them.
ReportPiece make_report(ServerContext& shared, const ReportRequest& report);

// Of them, those with a file of their own. The stats document of the line protocol, of which no
// piece is much longer than kStatsPiece.
inline constexpr std::size_t kStatsPiece = 64 * 1024;
std::shared_ptr<ReportRest> stats_report(ServerContext& shared, bool shows_clients,
                                         PermitPtr confined_to);
// GET /v1/locks: keys with who holds them and who waits. Its only text is its last piece.
std::shared_ptr<ReportRest> key_listing(Engine& engine, const ClientRegistry& clients,
                                        const KeyQuery& query, PermitPtr confined_to);
// GET /v1/clients: who is connected. Likewise.
std::shared_ptr<ReportRest> client_listing(ServerContext& shared, const ClientQuery& query);
// GET /v1/history: what happened to keys and to the server, the latest first. All that is kept may
// have to be read for it, once.
ReportPiece history_report(ServerContext& shared, const HistoryRequest& request,
                           const PermitPtr& confined_to);
// GET /metrics: the counters of the whole server as Prometheus reads them. The hot path counts into
// plain numbers of its own (Stats under a shard's lock, WorkerStats of one thread each); they are
// summed up when somebody asks.
std::string metrics_text(ServerContext& shared);

// Parts of several: one pattern and group that somebody listens to; and, in a cluster, who leads
// and how far this server has come.
std::string audience_json(const AudienceStatus& audience);
std::string cluster_json(const ServerContext& shared);
// GET /v1/cluster: all that this server knows of its cluster. Looks at nothing else.
std::string cluster_report(const Options& options, const ClusterJournal& cluster);

// A place in a listing as text, for the next page, and back; false when it is none.
std::string place_text(const ListCursor& place);
bool parse_place(std::string_view text, ListCursor* place);

// Lengths of time, as every document of the server has them: in whole milliseconds. Rounded down:
// what remains of a lease is never told as more than it is.
inline std::int64_t whole_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

inline std::int64_t whole_us(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// To the millisecond, as seconds.
inline double seconds(Duration duration) { return static_cast<double>(whole_ms(duration)) / 1000; }

// By the wall clock.
inline std::int64_t unix_ms_now() {
  return whole_ms(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace lockd
