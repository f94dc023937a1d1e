// Says whether a server lets us in, over TLS and with an auth token.
//
// usage: client_tls HOST:PORT CA_FILE, with the auth token in LOCKD_AUTH_TOKEN
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockd/client/connection.h"

using namespace lockd::client;

int main(int count, char** arguments) {
  const auto address = count == 3 ? Address::parse(arguments[1]) : std::nullopt;
  const char* const auth_token = std::getenv("LOCKD_AUTH_TOKEN");
  if (!address || auth_token == nullptr) return 2;
  const std::string ca_file = arguments[2];

  const ConnectOptions options{.tls = TlsOptions{.ca_file = ca_file}, .auth_token = auth_token};
  auto connection = Connection::open(*address, options);
  if (!connection) {
    std::printf("%s\n", describe(connection).c_str());
    return 1;
  }
  std::printf("ping: %s\n", describe(connection->ping()).c_str());
}
