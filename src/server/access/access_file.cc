#include "server/access/access_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "config/option.h"
#include "config/values.h"

namespace lockd {
namespace {

using Names = std::vector<std::string_view>;

std::string line_of(const toml::source_region& source) {
  return "line " + std::to_string(source.begin.line);
}

// The name is not shown: it may be a secret that stands in the wrong place.
std::string unknown(std::string_view what, std::string_view name, const Names& names) {
  return "unknown " + std::string(what) + config::suggestion(name, names, "");
}

std::optional<Permit::Expiry> expiry_of(const toml::node& node) {
  const auto day_of = [](const toml::date& date) {
    return std::chrono::sys_days(std::chrono::year(date.year) / date.month / date.day);
  };
  if (const auto date = node.value_exact<toml::date>()) return day_of(*date);
  const auto moment = node.value_exact<toml::date_time>();
  if (!moment || !moment->offset) return std::nullopt;  // nobody knows whose noon it is
  const toml::time& time = moment->time;
  return day_of(moment->date) + std::chrono::hours(time.hour) + std::chrono::minutes(time.minute) +
         std::chrono::seconds(time.second) - std::chrono::minutes(moment->offset->minutes);
}

// One table of the file to a permit. Each step returns false when it ends there, with the reason in
// `error`, which begins with the line.
class TableReader {
 public:
  explicit TableReader(Permit::Proof proof) { permit_.proof = proof; }

  bool read(const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return fail(node.source(), "a table is needed");
    for (const auto& [key, value] : *table) {
      if (!read_member(key.str(), value, key.source())) return false;
    }
    if (permit_.name.empty()) return fail(node.source(), kind() + " without a name");
    if (permit_.shown.empty()) {
      return fail(node.source(), is_token() ? "sha256 is missing" : "cn or san is missing");
    }
    return has_rights_ || fail(node.source(), "rights is missing");
  }

  Permit& permit() { return permit_; }
  const std::string& error() const { return error_; }

 private:
  bool is_token() const { return permit_.proof == Permit::Proof::token; }
  std::string kind() const { return is_token() ? "token" : "certificate"; }

  bool read_member(std::string_view name, const toml::node& value,
                   const toml::source_region& source) {
    if (name == "name") return read_name(value, source);
    if (name == "rights") return read_rights(value, source);
    if (name == "keys") return read_keys(value, source);
    if (name == "expires") return read_expiry(value, source);
    if (is_token() && name == "sha256") return read_digest(value, source);
    if (!is_token() && (name == "cn" || name == "san")) return read_subject(name, value, source);
    Names names{"name", "rights", "keys", "expires"};
    if (is_token()) {
      names.push_back("sha256");
    } else {
      names.insert(names.end(), {"cn", "san"});
    }
    return fail(source, unknown("member of [[" + kind() + "]]", name, names));
  }

  bool read_name(const toml::node& value, const toml::source_region& source) {
    const auto name = value.value_exact<std::string>();
    if (!name || !is_name(*name)) {
      return fail(source, "name must be 1 to 256 bytes of text without control characters");
    }
    if (*name == kSharedTokenName) {
      return fail(source, "the name 'default' is that of --auth-token and --auth-token-file");
    }
    permit_.name = *name;
    return true;
  }

  // What is wrong is not shown: it may be the secret itself.
  bool read_digest(const toml::node& value, const toml::source_region& source) {
    const auto hex = value.value_exact<std::string>();
    const auto digest = hex ? parse_sha256(*hex) : std::nullopt;
    if (!digest) return fail(source, "sha256 must be 64 hex digits: see `lockctl token new`");
    permit_.shown = bytes_of(*digest);
    return true;
  }

  bool read_subject(std::string_view member, const toml::node& value,
                    const toml::source_region& source) {
    const auto name = value.value_exact<std::string>();
    if (!name || name->empty() || !is_plain_text(*name)) {
      return fail(source, std::string(member) + " must be text without control characters");
    }
    if (!permit_.shown.empty()) return fail(source, "give cn or san, not both");
    permit_.shown = member == "cn" ? by_common_name(*name) : by_alternative_name(*name);
    return true;
  }

  bool read_rights(const toml::node& value, const toml::source_region& source) {
    const auto words = texts_of(value);
    if (!words) return fail(source, "rights must be a list of texts");
    has_rights_ = true;
    for (const std::string& word : *words) {
      const std::optional<Right> right = right_of(word);
      Names names;
      for (const Right known : kRights) names.push_back(word_of(known));
      if (!right) return fail(source, unknown("right", word, names));
      permit_.rights = permit_.rights.with(*right);
    }
    return true;
  }

  // No prefix at all would be every key, which nobody writes this way by intention.
  bool read_keys(const toml::node& value, const toml::source_region& source) {
    const auto prefixes = texts_of(value);
    const bool is_good =
        prefixes && !prefixes->empty() && std::all_of(prefixes->begin(), prefixes->end(), is_name);
    if (!is_good) {
      return fail(
          source,
          "keys must be a list of prefixes, each 1 to 256 bytes; leave it out for all keys");
    }
    permit_.prefixes = *prefixes;
    return true;
  }

  bool read_expiry(const toml::node& value, const toml::source_region& source) {
    permit_.expires = expiry_of(value);
    return permit_.expires.has_value() ||
           fail(source,
                "expires must be a date, 2027-01-01, or a moment with its offset, "
                "2027-01-01T12:30:00Z, without quotes");
  }

  static std::optional<std::vector<std::string>> texts_of(const toml::node& value) {
    const toml::array* const list = value.as_array();
    if (list == nullptr) return std::nullopt;
    std::vector<std::string> texts;
    for (const toml::node& node : *list) {
      const auto* const text = node.as_string();
      if (text == nullptr) return std::nullopt;
      texts.push_back(text->get());
    }
    return texts;
  }

  bool fail(const toml::source_region& source, const std::string& what) {
    const std::string who =
        permit_.name.empty() ? "" : kind() + " " + config::in_quotes(permit_.name) + ": ";
    error_ = line_of(source) + ": " + who + what;
    return false;
  }

  Permit permit_;
  bool has_rights_ = false;
  std::string error_;
};

// The file, table by table.
class FileReader {
 public:
  AccessFile read(std::string_view text) {
    try {
      const toml::table entries = toml::parse(text);
      for (const auto& [key, node] : entries) {
        if (!read_entry(key.str(), node, key.source())) return {.error = std::move(error_)};
      }
    } catch (const toml::parse_error& error) {
      // Its own words quote from the text, which may have a secret in it by mistake.
      return {.error = line_of(error.source()) + ": not valid TOML"};
    }
    return {.permits = std::move(permits_)};
  }

 private:
  bool read_entry(std::string_view name, const toml::node& node,
                  const toml::source_region& source) {
    const bool is_token = name == "token";
    if (!is_token && name != "certificate") {
      error_ = line_of(source) + ": " + unknown("table", name, {"token", "certificate"});
      return false;
    }
    const toml::array* const tables = node.as_array();
    if (tables == nullptr) {
      error_ = line_of(source) + ": write [[" + std::string(name) + "]], with two brackets";
      return false;
    }
    const auto proof = is_token ? Permit::Proof::token : Permit::Proof::certificate;
    return std::all_of(tables->begin(), tables->end(),
                       [&](const toml::node& table) { return add(proof, table); });
  }

  bool add(Permit::Proof proof, const toml::node& node) {
    TableReader table(proof);
    if (!table.read(node)) {
      error_ = table.error();
      return false;
    }
    const std::string line = line_of(node.source());
    const auto [first, is_new] = lines_.emplace(std::pair(proof, table.permit().shown), line);
    if (!is_new) {
      error_ = line + ": " + (proof == Permit::Proof::token ? "the sha256" : "the certificate") +
               " of " + first->second + " again";
      return false;
    }
    permits_.push_back(std::move(table.permit()));
    return true;
  }

  std::vector<Permit> permits_;
  std::map<std::pair<Permit::Proof, std::string>, std::string> lines_;  // by what is shown
  std::string error_;
};

// What is wrong with it beside the other settings, or empty.
std::string why_not_beside(const Options& options, std::span<const HashedSecret> shared,
                           const std::vector<Permit>& permits) {
  for (const Permit& permit : permits) {
    const std::string name = config::in_quotes(permit.name);
    if (permit.proof == Permit::Proof::certificate && options.tls_client_ca.empty()) {
      return "certificate " + name + " needs --tls-client-ca: nobody is asked for certificates";
    }
    if (permit.proof != Permit::Proof::token) continue;
    const bool is_shared = std::any_of(shared.begin(), shared.end(), [&](const auto& token) {
      return !token.empty() && bytes_of(token.digest()) == permit.shown;
    });
    if (is_shared) {
      return "token " + name + " has the secret of --auth-token or --auth-token-file";
    }
  }
  return {};
}

}  // namespace

AccessFile parse_access_file(std::string_view text) { return FileReader().read(text); }

AccessFile read_access_file(const Options& options, std::span<const HashedSecret> shared,
                            const config::Environment& environment) {
  if (options.access.empty()) return {};
  const config::FileText file = environment.read_file(options.access);
  AccessFile read = file.error.empty() ? parse_access_file(file.text)
                                       : AccessFile{.error = "it cannot be read: " + file.error};
  if (read.error.empty()) read.error = why_not_beside(options, shared, read.permits);
  if (!read.error.empty()) {
    read.error = "--access is " + config::in_quotes(options.access) + ": " + read.error;
  }
  return read;
}

std::string by_common_name(std::string_view name) { return "cn=" + std::string(name); }
std::string by_alternative_name(std::string_view name) { return "san=" + std::string(name); }

}  // namespace lockd
