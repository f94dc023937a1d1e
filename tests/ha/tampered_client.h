// A client of etcd that is not honest: what is asked, answered and told passes through hooks. It is
// how faults are planted, without a line of what is tested being changed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replication/etcd_client.h"

namespace lockd::ha_test {

struct Hooks {
  std::function<void(etcd::Txn&)> asked = [](etcd::Txn&) {};
  std::function<void(const etcd::Txn&, etcd::Answer&)> answered = [](const etcd::Txn&,
                                                                     etcd::Answer&) {};
  std::function<void(etcd::Change&)> told = [](etcd::Change&) {};
};

class TamperedClient final : public etcd::Client, private etcd::Watcher {
 public:
  TamperedClient(std::unique_ptr<etcd::Client> client, Hooks hooks)
      : client_(std::move(client)), hooks_(std::move(hooks)) {}

  void execute(const etcd::Txn& honest, Duration within, Done done) override {
    etcd::Txn txn = honest;
    hooks_.asked(txn);
    client_->execute(txn, within, [this, txn, done = std::move(done)](const etcd::Answer& honest) {
      etcd::Answer answer = honest;
      hooks_.answered(txn, answer);
      done(answer);
    });
  }
  void switch_member() override { client_->switch_member(); }
  void compact(etcd::Revision revision, Duration within, Done done) override {
    client_->compact(revision, within, std::move(done));
  }
  void measure(Duration within, Measured measured) override {
    client_->measure(within, std::move(measured));
  }
  void watch(const std::string& key, const std::string& range_end, etcd::Revision from,
             etcd::Watcher& watcher) override {
    watcher_ = &watcher;
    client_->watch(key, range_end, from, *this);
  }
  void unwatch() override { client_->unwatch(); }

 private:
  void changed(const std::vector<etcd::Change>& honest) override {
    std::vector<etcd::Change> changes = honest;
    for (etcd::Change& change : changes) hooks_.told(change);
    watcher_->changed(changes);
  }
  void ended(bool compacted, const std::string& why) override { watcher_->ended(compacted, why); }

  const std::unique_ptr<etcd::Client> client_;
  const Hooks hooks_;
  etcd::Watcher* watcher_ = nullptr;
};

}  // namespace lockd::ha_test
