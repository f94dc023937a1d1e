// The file of --access: which auth tokens and client certificates may do what.
//
//   [[token]]
//   name    = "billing"
//   sha256  = "9f86d081..."                  # of the secret, in hex
//   rights  = ["lock", "signal"]
//   keys    = ["billing/", "shared/invoice"]  # prefixes of keys and of channels; left out: all
//   expires = 2027-01-01                      # optional; 00:00 UTC
//
//   [[certificate]]
//   name    = "deployer"
//   cn      = "deployer"                      # or san = "deployer.example"
//   rights  = ["lock", "read", "admin"]
//
// Read when the settings are loaded, and by Access, at the start and again when it is told to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "config/environment.h"
#include "server/access/permit.h"
#include "server/settings/options.h"

namespace lockd {

struct AccessFile {
  std::vector<Permit> permits{};  // of tokens and certificates, as they stand
  std::string error{};            // one line; quotes nothing but the names of tables
};

// Pure: the text has been read. An error names the line.
AccessFile parse_access_file(std::string_view text);

// The file that the options name, if they name one, and whether it goes together with the rest of
// them and with the auth tokens that all share.
AccessFile read_access_file(const Options& options, std::span<const HashedSecret> shared,
                            const config::Environment& environment);

// How a certificate is found: by its common name, or by one of its alternative names.
std::string by_common_name(std::string_view name);
std::string by_alternative_name(std::string_view name);

// The name of the auth token that all share.
inline constexpr std::string_view kSharedTokenName = "default";

}  // namespace lockd
