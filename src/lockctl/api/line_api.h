// The API over the line port, by its command `api`: of the server that has a key, or of the one
// that leads a cluster.
//
// Each call is made on a connection of its own. In a cluster it begins with a search for the
// leader; a call that was sent is sent to nobody else, unless the answer is that nothing was done.
#pragma once

#include <stop_token>
#include <string>

#include "lockctl/api/api.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

// The server lacks the command.
class NoApi final : public Failure {
 public:
  using Failure::Failure;
};

class LineApi final : public Api {
 public:
  // `command` is what needs the API, for the line that says so when a server lacks it.
  LineApi(client::ClientOptions options, std::string command);

  ApiReply get(const std::string& path, const Parameters& parameters) override;
  ApiReply post(const std::string& path, const Parameters& parameters, Duration wait) override;
  ApiReply follow(const std::string& path, const Parameters& parameters, const Sink& sink) override;
  void interrupt() override { interrupted_.request_stop(); }
  std::string server() const override { return client_.server_of("").to_string(); }

 private:
  ApiReply call(const client::ApiCall& call);
  ApiReply call_once(const client::ApiCall& call);

  const bool is_cluster_;
  const Duration patience_;  // for finding who leads
  const std::string command_;
  client::Client client_;
  client::Connection connection_;  // of the last call
  std::stop_source interrupted_;
};

}  // namespace lockd::cli
