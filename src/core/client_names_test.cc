// Tests of client identities, which holds and places keep and listings show.
#include "core/client_names.h"

#include <memory>
#include <string>
#include <vector>

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

ClientRef make_client(std::string name, std::string note = {}) {
  return std::make_shared<const ClientIdentity>(
      ClientIdentity{std::move(name), "10.0.0.7:51234", std::move(note)});
}

class ClientNamesTest : public LockTableTest {
 protected:
  void SetUp() override {
    LockTableTest::SetUp();
    table_->observe(Observed::everything);
  }

  const Key& key(std::string_view name, Kind kind = Kind::lock) {
    const Key* found = table_->find(now_, kind, name);
    EXPECT_NE(found, nullptr);
    return *found;
  }
  ClientRef client_of(std::string_view name, Kind kind = Kind::lock) {
    return table_->client_of(*key(name, kind).holds.front());
  }

  Session ann_{.id = 17, .client = make_client("ann@build-7:4711", "deploy")};
};

TEST_F(ClientNamesTest, HoldSharesIdentityOfItsSession) {
  grant("k", Holder(&ann_, 1));
  EXPECT_EQ(client_of("k"), ann_.client);  // the same pointer
  EXPECT_EQ(key_events_.back().client, ann_.client);
  EXPECT_EQ(key_events_.back().session, 17u);
}

TEST_F(ClientNamesTest, GrantKeepsIdentityOfWaiter) {
  const Fence first = grant("k", "bob");
  EXPECT_EQ(client_of("k"), nullptr);
  queue("k", Holder(&ann_, 1), 1);
  EXPECT_EQ(key("k").queue.front()->client, ann_.client);
  EXPECT_EQ(key_events_.back().client, ann_.client);
  const ClientRef before = ann_.client;
  ann_.client = make_client("ann, later");  // for later requests only
  release("k", "bob", first);
  EXPECT_EQ(client_of("k"), before);
  EXPECT_EQ(key_events_.back().type, KeyEvent::Type::granted);
  EXPECT_EQ(key_events_.back().client, before);
}

TEST_F(ClientNamesTest, RequestByNameCarriesPeerAndNote) {
  grant("k", "bob", {.note = "deploy", .peer = "10.0.0.9:1"});
  EXPECT_EQ(*client_of("k"), (ClientIdentity{"", "10.0.0.9:1", "deploy"}));
  acquire("k", "cid");
  EXPECT_EQ(conflicts_.at(0).client, client_of("k"));
  EXPECT_EQ(conflicts_.at(0).session, 0u);
  // A repeated request keeps the identity of the first.
  grant("k", "bob", {.note = "something else"});
  EXPECT_EQ(client_of("k")->note, "deploy");
}

TEST_F(ClientNamesTest, EqualIdentitiesAreStoredOnceUntilTheLastHoldEnds) {
  ClientNames names(HashKey{1, 2});
  const std::unique_ptr<Key> key = Key::create(Kind::semaphore, "s");
  Hold a(key.get());
  Hold b(key.get());
  names.keep(a, names.share({"", "10.0.0.9:1", "deploy"}));
  names.keep(b, names.share({"", "10.0.0.9:1", "deploy"}));
  EXPECT_EQ(names.of(a), names.of(b));
  EXPECT_EQ(names.texts(), 1u);
  // The same characters split differently are another identity.
  const KnownClient other = names.share({"", "10.0.0.9:1d", "eploy"});
  EXPECT_EQ(names.texts(), 2u);
  names.drop(other);
  const ClientRef seen = names.of(a);  // like a listing: keeps the texts alive, not the entry
  names.forget(a);
  EXPECT_EQ(names.texts(), 1u);
  EXPECT_EQ(names.of(a), nullptr);
  names.forget(b);
  EXPECT_EQ(names.texts(), 0u);
  EXPECT_EQ(names.holds(), 0u);
  EXPECT_EQ(seen->note, "deploy");
}

TEST_F(ClientNamesTest, EmptyIdentityTakesNoEntry) {
  ClientNames names(HashKey{1, 2});
  const std::unique_ptr<Key> key = Key::create(Kind::semaphore, "s");
  Hold hold(key.get());
  names.keep(hold, names.share({}));
  const Session silent{.id = 1};
  names.keep(hold, ClientNames::of_session(&silent));
  names.keep(hold, ClientNames::of_session(nullptr));
  EXPECT_EQ(names.holds(), 0u);
  EXPECT_EQ(names.of(hold), nullptr);
}

TEST_F(ClientNamesTest, EndedHoldReleasesIdentity) {
  const std::weak_ptr<const ClientIdentity> there = ann_.client;
  const Fence fence = grant("k", Holder(&ann_, 1));
  queue("k", Holder(&ann_, 2), 1);
  ann_.client = nullptr;
  key_events_.clear();
  EXPECT_FALSE(there.expired());
  release("k", secret(17, 1), fence);
  end_session(17);
  key_events_.clear();
  EXPECT_TRUE(there.expired());
}

TEST_F(ClientNamesTest, InvalidNoteOrPeerIsRejected) {
  const std::string longest(kNoteSizeMax, 'n');
  EXPECT_EQ(acquire("k", "a", {.note = longest, .peer = std::string(kPeerSizeMax, 'p')}).outcome,
            Outcome::ok);
  const std::vector<std::string> bad = {longest + "n", "two\nlines", "\xff", std::string(1, '\0')};
  for (const std::string& note : bad) {
    EXPECT_EQ(acquire("other", "a", {.note = note}).outcome, Outcome::invalid_note) << note;
  }
  EXPECT_EQ(acquire("other", "a", {.peer = std::string(kPeerSizeMax + 1, 'p')}).outcome,
            Outcome::invalid_note);
  EXPECT_EQ(table_->find(now_, Kind::lock, "other"), nullptr);
}

TEST_F(ClientNamesTest, OversizeSessionNameIsRejected) {
  Session session{.id = 3, .client = make_client(std::string(kHolderSizeMax + 1, 'n'))};
  EXPECT_EQ(acquire("k", Holder(&session, 1)).outcome, Outcome::invalid_note);
  EXPECT_EQ(enqueue("k", Holder(&session, 1)).outcome, Outcome::invalid_note);
  EXPECT_EQ(table_->keys(), 0u);
}

TEST_F(ClientNamesTest, HoldOfEndedSessionReportsNoSession) {
  grant("k", Holder(&ann_, 1), {.ttl = 5s});
  end_session(17, /*keep_holds=*/true);
  pass(5s);
  EXPECT_EQ(key_events_.back().type, KeyEvent::Type::expired);
  EXPECT_EQ(key_events_.back().holder, "tcp:17");
  EXPECT_EQ(key_events_.back().session, 0u);
  EXPECT_EQ(key_events_.back().client, ann_.client);
}

}  // namespace
}  // namespace lockd
