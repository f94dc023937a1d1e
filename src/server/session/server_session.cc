#include "server/session/server_session.h"

#include "server/session/session_host.h"

namespace lockd {

LeaderChannel& ServerSession::leader() {
  if (leader_ == nullptr) {
    LeaderChannel::Client& client = *this;
    leader_ = std::make_unique<LeaderChannel>(*context_.forwarder, context_.host.news_reader(),
                                              id(), client);
    leader_->introduce(introduction());
  }
  return *leader_;
}

ForwardedClient ServerSession::introduction() const {
  ForwardedClient who{.peer = peer_.address, .token_name = permit_->name};
  if (session_.client == nullptr) return who;
  who.names_itself = true;
  who.name = session_.client->name;
  who.note = session_.client->note;
  return who;
}

// When this server begins to lead, there is nothing more to ask elsewhere.
void ServerSession::on_news(const LeaderNews& news, std::string& out) {
  if (leader_ == nullptr) return;
  const Time now = context_.engine.now();
  if (news.what != LeaderNews::What::here) return leader_->take(news, now, out);
  std::unique_ptr<LeaderChannel>(std::move(leader_))->take(news, now, out);
}

}  // namespace lockd
