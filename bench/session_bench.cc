// What a request costs between its socket and its reply: framing, parsing, executing, answering.
//
// What the server spends beyond this is the kernel's and the loop's: see server_bench. Run by
// `make bench`; stats and what they mean are in docs/performance.md.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "line_load.h"
#include "lockd/batch.h"
#include "lockd/engine.h"
#include "protocol/line/line_framer.h"
#include "protocol/line/line_request.h"
#include "server/session/line_session.h"
#include "server/session/session_host.h"
#include "server/session/testing/memory_transport.h"

namespace lockd {
namespace {

// To a string that the benchmark reads.
class Memory final : public MemoryTransport {
 public:
  explicit Memory(std::string& out) : out_(out) {}

 private:
  void sent(std::string_view bytes) override { out_ += bytes; }
  void close() override {}
  bool is_idle() const override { return true; }

  std::string& out_;
};

std::vector<bench::Dialogue> dialogues(std::size_t count) {
  std::vector<bench::Dialogue> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(bench::Protocol::line, "key-" + std::to_string(10'000'000 + i));
  }
  return all;
}

// Acquire and release in turn, over 1,024 keys, `pipeline` requests at once.
void session_requests(benchmark::State& state) {
  const auto pipeline = static_cast<std::size_t>(state.range(0));
  const Options options;
  Engine engine({.keys_max = 10'000});
  SignalHub hub(0);
  ClientRegistry clients;
  EventFeed feed;
  TokenSource secrets;
  const Access access(options);
  WorkerStats stats;
  ReportQueue reports([](const ReportRequest&) { return ReportPiece{}; }, [](ReportQueue::Lane) {});
  SessionHost host({.options = options,
                    .engine = engine,
                    .hub = hub,
                    .feed = feed,
                    .secrets = secrets,
                    .access = access,
                    .clients = clients,
                    .stats = stats,
                    .unix_ms = [] { return std::int64_t{0}; },
                    .reports = reports,
                    .wake = [] {}});
  std::string out;
  HostedSession& hosted =
      host.open(std::make_unique<LineSession>(host.context(), 1), std::make_unique<Memory>(out));
  std::vector<bench::Dialogue> all = dialogues(1024);
  std::string in;
  std::size_t first = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < pipeline; ++i) in += all[first + i].request();
    host.receive(hosted, in);
    host.end_turn();
    std::string_view replies = out;
    for (std::size_t i = 0; i < pipeline; ++i) {
      const std::size_t end = replies.find('\n');
      if (!all[first + i].take(replies.substr(0, end))) state.SkipWithError("an unexpected reply");
      replies.remove_prefix(end + 1);
    }
    first = (first + pipeline) % all.size();
    in.clear();
    out.clear();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(session_requests)->ArgName("pipeline")->Arg(1)->Arg(16);

// The bytes of one request into its parts, and no further.
void frame_and_parse(benchmark::State& state) {
  const std::string request = state.range(0) == 0
                                  ? bench::line_request("l", "key-10000000", "0 30")
                                  : bench::line_request("r", "key-10000000", std::string(32, 'a'));
  LineFramer framer;
  for (auto _ : state) {
    const LineFramer::Framed framed = framer.next(request);
    benchmark::DoNotOptimize(parse_request(framed.lines, Phase::open));
  }
}
BENCHMARK(frame_and_parse)->ArgName("release")->Arg(0)->Arg(1);

}  // namespace
}  // namespace lockd

BENCHMARK_MAIN();
