// lockctl list.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/fetch.h"
#include "lockctl/http/json.h"
#include "lockctl/output/key_table.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

void sort(std::vector<KeyView>& keys, bool by_waiters) {
  if (by_waiters) return sort_by_waiters(keys);
  std::stable_sort(keys.begin(), keys.end(),
                   [](const KeyView& a, const KeyView& b) { return a.key < b.key; });
}

// Prints keys: for programs as they come, for people sorted.
class Listing {
 public:
  explicit Listing(const Invocation& invocation)
      : invocation_(invocation),
        json_(invocation.arguments.has("json")),
        left_(invocation.arguments.whole("limit").value_or(UINT64_MAX)) {}

  std::uint64_t left() const { return left_; }

  void add(KeyView key, std::string_view as_json) {
    if (left_ == 0) return;
    --left_;
    if (json_) {
      invocation_.output.line(as_json);
    } else {
      keys_.push_back(std::move(key));
    }
  }

  void finish() {
    if (keys_.empty()) return;
    sort(keys_, invocation_.arguments.has("waiters"));
    KeyTable table;
    for (const KeyView& key : keys_) table.add(key);
    invocation_.output.write(table.text(invocation_.output.style()));
  }

 private:
  const Invocation& invocation_;
  const bool json_;
  std::uint64_t left_;
  std::vector<KeyView> keys_;
};

// Page after page, in no order; the longest queues are one page.
void list_over_http(const Invocation& invocation, Listing& listing) {
  constexpr std::uint64_t kPage = 1000;
  const auto http = require_http(invocation);
  std::string fixed = "/v1/locks?prefix=" + url_encoded(invocation.arguments.operand_or(0, ""));
  if (invocation.arguments.has("idle")) fixed += "&idle=true";
  if (invocation.arguments.has("waiters")) fixed += "&order=waiters";
  for (std::string after; listing.left() > 0;) {
    std::string target = fixed + "&limit=" + std::to_string(std::min(kPage, listing.left()));
    if (!after.empty()) target += "&after=" + url_encoded(after);
    const HttpReply reply = http->get(target);
    require(reply);
    const json::value page = parse_json(reply.body, "the server");
    for (const json::value& lock : array_of(page, "locks")) {
      listing.add(key_view(lock), json::serialize(lock));
    }
    std::string next = text_of(page, "next");
    if (next.empty() || next == after) return;
    after = std::move(next);
  }
}

void list_over_line(const Invocation& invocation, Listing& listing) {
  const std::string prefix = invocation.arguments.operand_or(0, "");
  std::vector<KeyView> keys;
  for (const client::Address& server : servers_to_ask(invocation.settings)) {
    const json::value stats =
        parse_json(fetch_stats(invocation.settings, server), server.to_string());
    for (KeyView& key : keys_of_stats(stats)) {
      if (key.idle_for && !invocation.arguments.has("idle")) continue;
      if (key.key.starts_with(prefix)) keys.push_back(std::move(key));
    }
  }
  sort(keys, invocation.arguments.has("waiters"));
  for (const KeyView& key : keys) listing.add(key, json_of(key));
}

}  // namespace

int execute_list(const Invocation& invocation) {
  Listing listing(invocation);
  if (!invocation.settings.http.empty()) {
    list_over_http(invocation, listing);
  } else {
    list_over_line(invocation, listing);
  }
  listing.finish();
  return kExitOk;
}

}  // namespace lockd::cli
