/**
 * Several keys at once: all of them or none, under one fence.
 *
 * What all clients do at scripted servers is in `clients/conformance`.
 */

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import {
  eventually,
  FakeServer,
  failure,
  grants,
  lossOf,
  now,
  PATIENCE,
  Server,
  shareServer,
  sleep,
  tell,
} from "./support.js";

const { server, locks, nextKey } = await shareServer();
let [a, b, c] = ["", "", ""];

beforeEach(() => {
  [a, b, c] = [nextKey(), nextKey(), nextKey()];
});

async function waiters(key: string): Promise<number> {
  const { locks: all } = await locks.stats();
  return all.find((lock) => lock.key === key)?.waiters ?? 0;
}

const queueOf = (length: number, key: string) =>
  eventually(async () => (await waiters(key)) === length, `a queue of ${length}`);

/** That a try is refused. */
const isHeld = (key: string) => failure(lockd.NotAcquired, locks.acquire(key, { wait: 0 }));

/** That a try is granted. */
const isFree = (key: string) => locks.using(key, { wait: 0 }, () => {});

async function revoke(key: string): Promise<void> {
  const call = JSON.stringify({ key, all: true, reason: "a test" });
  const said = await tell(server.port, `api\nPOST /v1/admin/release\n${call}\n`);
  assert.match(said, /^ok 200 /);
}

describe("a set", () => {
  test("is held whole or not at all", async () => {
    const held = await locks.acquireAll([a, b], { wait: 0, lease: 15_000 });
    assert.deepEqual([held.keys, held.key, held.lease], [[a, b], a, 15_000]);
    held.check();
    await isHeld(a);
    await isHeld(b);
    const busy = await failure(lockd.NotAcquired, locks.acquireAll([c, b], { wait: 0 }));
    assert.match(busy.holder ?? "", /^.+@.+:\d+#[0-9a-f]{16}$/);
    assert.equal(busy.waiters, 0);
    await failure(lockd.NotAcquired, locks.acquireAll([a, b], { wait: 0 }));
    await isFree(c);
    await held.release();
    assert.ok(!held.isHeld);
    await isFree(a);
    await isFree(b);
  });

  test("of which one is taken away is lost", async () => {
    const losses: lockd.LockLost[] = [];
    const held = await locks.acquireAll([a, b], {
      lease: 2000,
      onLost: (loss) => losses.push(loss),
    });
    await revoke(b);
    const loss = await lossOf(held);
    assert.equal(loss?.reason, "refused");
    assert.ok(loss.message.includes(b));
    assert.deepEqual(losses, [loss]);
    await locks.using(a, { wait: PATIENCE }, () => {}); // the rest is given back
    const other = await locks.acquireAll([a, b]);
    await revoke(b);
    await failure(lockd.LockLost, other.release());
    await isFree(a);
  });

  test("of any items waits for room in each, and renews itself", async () => {
    const items = [
      { key: a, shared: true },
      { key: b, limit: 2, permits: 2 },
    ];
    const writer = await locks.acquire(a);
    const slot = await locks.acquire(b, { limit: 2 });
    let isGranted = false;
    const waiting = locks.acquireAll(items, { wait: PATIENCE, lease: 1000 });
    void waiting.then(() => {
      isGranted = true;
    });
    await queueOf(1, a);
    await writer.release();
    await isHeld(a); // free, and not for who came later
    assert.ok(!isGranted);
    await slot.release();
    await using held = await waiting;
    assert.ok(slot.fence < held.fence);
    for (const deadline = now() + 2500; now() < deadline; ) {
      held.check();
      await sleep(10);
    }
    await isHeld(a);
  });

  test("has a lock and a semaphore of one key", async () => {
    await using _ = await locks.acquireAll([a, { key: a, limit: 1 }], { wait: 0 });
    await isHeld(a);
    await failure(lockd.NotAcquired, locks.acquire(a, { limit: 1, wait: 0 }));
    const other = locks.acquireAll([{ key: a, limit: 2 }], { wait: 0 });
    await failure(lockd.LimitMismatch, other);
  });

  test("is released when the client is closed", async () => {
    const other = new lockd.Client(server.address);
    const held = await other.acquireAll([a, b], { lease: 60_000 });
    await other.close();
    assert.ok(!held.isHeld);
    await isFree(a);
    await isFree(b);
  });

  test("whose wait the server cuts is asked for again", async () => {
    await using other = await Server.begin("--max-set-wait", "1");
    await using there = new lockd.Client(other.address);
    await using _ = await there.acquire("a");
    const began = now();
    const over = await failure(lockd.NotAcquired, there.acquireAll(["a", "b"], { wait: 2500 }));
    assert.ok(now() - began >= 2500);
    assert.ok(over.queuedAgain);
  });
});

describe("requests", () => {
  test("that no server takes are not sent", async () => {
    await using one = await FakeServer.begin(grants());
    await using two = await FakeServer.begin(grants());
    await using client = new lockd.Client([one.address, two.address]);
    assert.notEqual(client.serverOf("a"), client.serverOf("d"));
    const many = Array.from({ length: 65 }, (_, n) => String(n));
    for (const wanted of [[], ["a", "a"], ["a", ""], many, ["a", "d"]]) {
      await failure(lockd.InvalidRequest, client.acquireAll(wanted));
    }
    await failure(lockd.InvalidRequest, client.acquireAll(["a"], { lease: 1 }));
    const twoLimits = [
      { key: "a", limit: 2 },
      { key: "a", limit: 3 },
    ];
    await failure(lockd.InvalidRequest, client.acquireAll(twoLimits));
    for (const share of [
      { permits: 2 },
      { limit: 0 },
      { limit: 2, permits: 3 },
      { limit: 2, shared: true },
    ]) {
      await failure(lockd.InvalidRequest, client.acquireAll([{ key: "a", ...share }]));
    }
    assert.deepEqual([...one.seen, ...two.seen], []);
  });

  test("name one holder", async () => {
    await using fake = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("api", 'ok 200 {"token":7,"ttl_ms":9000}');
      await peer.answer("api", 'ok 200 {"released":["é","b"],"not_held":[]}');
    });
    await using client = new lockd.Client({ servers: fake.address, name: "é".repeat(128) });
    const held = await client.acquireAll(["é", "b"], { wait: 1500, lease: 9000 });
    assert.deepEqual([held.fence, held.lease], [7n, 9000]);
    await held.release();
    const [acquire, release] = fake.argumentsOf("api").map((said) => JSON.parse(said));
    assert.match(acquire.holder, /^é{119}#[0-9a-f]{16}$/);
    assert.ok(acquire.wait_ms <= 1500);
    const asked = { keys: ["é", "b"], holder: acquire.holder };
    assert.deepEqual(acquire, { ...asked, ttl_ms: 9000, wait_ms: acquire.wait_ms });
    assert.deepEqual(release, { ...asked, token: 7 });
  });

  test("of any items name what they take", async () => {
    await using fake = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("api", 'ok 200 {"token":7,"ttl_ms":9000}');
      await peer.answer("api", 'ok 200 {"released":[],"not_held":[{"key":"b","kind":"lock"}]}');
    });
    await using client = new lockd.Client(fake.address);
    const items = ["a", { key: "b", shared: true }, { key: "c", limit: 4, permits: 2 }];
    const held = await client.acquireAll(items, { wait: 0 });
    const loss = await failure(lockd.LockLost, held.release());
    assert.match(String((loss.cause as Error | undefined)?.message), /"b"/);
    for (const said of fake.argumentsOf("api")) {
      assert.deepEqual(JSON.parse(said).items, [
        { key: "a" },
        { key: "b", mode: "shared" },
        { key: "c", kind: "semaphore", limit: 4, permits: 2 },
      ]);
    }
  });

  test("are answered with why", async () => {
    for (const [line, kind] of [
      ['ok 401 {"error":"unauthorized"}', lockd.Unauthorized],
      ['ok 200 {"token":1}', lockd.Garbled],
      ["ok x {}", lockd.Garbled],
      [
        'ok 409 {"error":"held","conflicts":[{"held_by":7},{"held_by":{"holder":7}},7]}',
        lockd.NotAcquired,
      ],
    ] as const) {
      await using fake = await FakeServer.begin(async (peer) => {
        await peer.answer("client", "ok");
        await peer.answer("api", line);
        await peer.waitClosed();
      });
      await using client = new lockd.Client(fake.address);
      await failure(kind, client.acquireAll(["a", "b"], { wait: 0 }));
    }
  });
});
