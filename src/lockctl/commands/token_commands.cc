// Auth tokens: whoami, token new.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/descriptor.h"
#include "base/json_text.h"
#include "base/secret.h"
#include "base/sha256.h"
#include "base/text.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"

namespace lockd::cli {

namespace json = boost::json;

// --- whoami ---

namespace {

std::string list_text(const json::value& object, std::string_view name) {
  std::string text;
  for (const json::value& item : array_of(object, name)) {
    if (!text.empty()) text += ", ";
    if (item.is_string()) text += std::string_view(item.get_string());
  }
  return text;
}

}  // namespace

int execute_whoami(const Invocation& invocation) {
  const ApiReply reply = apis_of(invocation).front()->get("/v1/whoami");
  require(reply);
  if (invocation.arguments.has("json")) {
    invocation.output.line(trimmed(reply.body));
    return kExitOk;
  }
  const json::value who = parse_json(reply.body, "the server");
  const auto say = [&](std::string_view what, const std::string& text) {
    std::string line(what);
    line.resize(9, ' ');
    invocation.output.line(line + printable(text));
  };
  say("name", has(who, "name") ? text_of(who, "name") : "-");
  const std::string rights = list_text(who, "rights");
  say("rights", rights.empty() ? "none" : rights);
  say("keys", has(who, "keys") ? list_text(who, "keys") : "all");
  say("expires", has(who, "expires") ? text_of(who, "expires") : "never");
  say("peer", text_of(who, "peer"));
  say("tls", truth_of(who, "tls") ? "yes" : "no");
  return kExitOk;
}

// --- token new ---

namespace {

constexpr std::string_view kRightWords[] = {"lock", "signal", "read", "admin"};

// 32 random bytes, in hex.
std::string new_secret() {
  TokenSource source;
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t word = source.next();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  Sha256 random{};
  std::copy(bytes.begin(), bytes.end(), random.begin());
  return hex_of(random);
}

// A text as TOML and JSON both have it.
std::string toml_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string quoted_list(const std::vector<std::string_view>& texts) {
  std::string list;
  for (const std::string_view text : texts) list += (list.empty() ? "" : ", ") + toml_text(text);
  return "[" + list + "]";
}

std::vector<std::string_view> rights_of(const Arguments& arguments) {
  const auto rights = config::split_list(arguments.text("rights").value_or("lock,signal,read"));
  for (const std::string_view right : rights) {
    if (std::find(std::begin(kRightWords), std::end(kRightWords), right) != std::end(kRightWords)) {
      continue;
    }
    throw Failure(kExitUsage,
                  "--rights: " + in_quotes(right) + " is none of lock, signal, read, admin");
  }
  return rights;
}

std::vector<std::string_view> prefixes_of(const Arguments& arguments) {
  std::vector<std::string_view> prefixes;
  for (const config::Given& given : arguments.given()) {
    if (given.option->name != "key") continue;
    if (!is_name(given.text)) {
      throw Failure(kExitUsage, "--key: 1 to 256 bytes of text without control characters");
    }
    prefixes.push_back(given.text);
  }
  return prefixes;
}

bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return false;
  }
  const auto number = [&](std::size_t at, std::size_t size) {
    return std::stoi(std::string(text.substr(at, size)));
  };
  return (std::chrono::year(number(0, 4)) / number(5, 2) / number(8, 2)).ok();
}

// The table for the file of --access.
std::string table_of(const Arguments& arguments, std::string_view secret) {
  const std::string& name = arguments.operands().front();
  if (!is_name(name) || name == "default") {
    throw Failure(kExitUsage,
                  "NAME: 1 to 256 bytes of text without control characters, and not `default`");
  }
  std::string table = "[[token]]\nname = " + toml_text(name) + "\nsha256 = \"" +
                      hex_of(sha256(secret)) + "\"\nrights = " + quoted_list(rights_of(arguments)) +
                      "\n";
  if (const auto prefixes = prefixes_of(arguments); !prefixes.empty()) {
    table += "keys = " + quoted_list(prefixes) + "\n";
  }
  if (const auto expires = arguments.text("expires")) {
    if (!is_date(*expires)) throw Failure(kExitUsage, "--expires: a date, as in 2027-01-01");
    table += "expires = " + std::string(*expires) + "\n";
  }
  return table;
}

// For its owner alone, from its first byte on.
void write_secret(const std::string& path, const std::string& secret) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string line = secret + "\n";
  const bool is_written =
      file && ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!is_written) throw Failure(kExitIo, path + ": " + std::generic_category().message(errno));
}

}  // namespace

int execute_token_new(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string secret = new_secret();
  const std::string table = table_of(arguments, secret);
  const auto path = arguments.text("secret-file");
  if (path) write_secret(std::string(*path), secret);
  if (arguments.has("json")) {
    JsonObject object;
    if (!path) object.add("secret", secret);
    object.add("table", table);
    invocation.output.line(object.finish());
    return kExitOk;
  }
  // Without the secret it is what can be appended to the file.
  if (!path) {
    invocation.output.write("The secret, for the client; it is shown only now:\n\n  " + secret +
                            "\n\nFor the server's file of --access:\n\n");
  }
  invocation.output.write(table);
  return kExitOk;
}

}  // namespace lockd::cli
