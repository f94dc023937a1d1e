/** Several keys at once: all of them or none, under one fence. */

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { withdraw } from "../src/acquisition.js";
import { Address, Cluster } from "../src/cluster.js";
import * as lockd from "../src/index.js";
import { Options } from "../src/options.js";
import { WantedSet } from "../src/sets.js";
import { Scope } from "../src/waiting.js";
import {
  eventually,
  FakeServer,
  Folder,
  failure,
  grants,
  isExactly,
  lossOf,
  now,
  PATIENCE,
  refusesClient,
  type Script,
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

  test("has one fence, larger than all before", async () => {
    const fences: bigint[] = [];
    for (const _ of [1, 2, 3]) await locks.using(b, {}, (held) => fences.push(held.fence));
    const held = await locks.acquireAll([a, b]);
    assert.ok(fences.every((fence) => fence < held.fence));
    await held.release();
    await locks.using(a, {}, (one) => assert.ok(held.fence < one.fence));
  });

  test("is waited for until all are free", async () => {
    const first = await locks.acquire(a);
    const second = await locks.acquire(b);
    let isGranted = false;
    const waiting = locks.acquireAll([a, b], { wait: PATIENCE });
    void waiting.then(() => {
      isGranted = true;
    });
    await queueOf(1, a);
    await queueOf(1, b);
    await first.release();
    await isHeld(a); // free, and not for who came later
    assert.ok(!isGranted);
    await second.release();
    const held = await waiting;
    assert.ok(second.fence < held.fence);
    await held.release();
  });

  test("that crosses another does not block it", async () => {
    const inside = new Set<string>();
    const work = async (...wanted: string[]) => {
      for (const _ of Array(10)) {
        await using _held = await locks.acquireAll(wanted, { wait: PATIENCE });
        for (const key of wanted) assert.ok(!inside.has(key));
        for (const key of wanted) inside.add(key);
        await sleep(1);
        for (const key of wanted) inside.delete(key);
      }
    };
    await Promise.all([work(a, b), work(b, a), work(b, c), work(c, a, b)]);
    for (const key of [a, b, c]) await isFree(key);
  });

  test("is never given up early, and at once when asked to", async () => {
    await using _ = await locks.acquire(b);
    for (const wait of [300, 1300]) {
      const began = now();
      await failure(lockd.NotAcquired, locks.acquireAll([a, b], { wait }));
      assert.ok(now() - began >= wait);
    }
    const stop = new AbortController();
    const waiting = failure(lockd.Cancelled, locks.acquireAll([a, b], { signal: stop.signal }));
    await queueOf(1, b);
    stop.abort();
    await waiting;
    await queueOf(0, b);
    await isFree(a);
  });

  test("renews itself", async () => {
    await using held = await locks.acquireAll([a, b], { lease: 1000 });
    for (const deadline = now() + 2500; now() < deadline; ) {
      held.check();
      await sleep(10);
    }
    await isHeld(a);
    await isHeld(b);
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

  test("of any items takes of each what was asked", async () => {
    const reads = { key: b, shared: true };
    const takes = { key: c, limit: 4, permits: 3 };
    {
      await using _reader = await locks.acquire(b, { shared: true });
      await using _slot = await locks.acquire(c, { limit: 4 });
      await using held = await locks.acquireAll([a, reads, takes], { wait: 0, lease: 15_000 });
      assert.deepEqual(held.keys, [a, b, c]);
      await isHeld(a);
      await isHeld(b);
      await locks.using(b, { shared: true, wait: 0 }, () => {});
      await failure(lockd.NotAcquired, locks.acquire(c, { limit: 4, wait: 0 })); // all are taken
    }
    await isFree(a);
    await isFree(b);
    await locks.using(c, { limit: 4, permits: 4, wait: 0 }, () => {});
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

  test("of which nobody heard is released, and nothing else", async () => {
    const wanted = new WantedSet(
      [
        { key: a, shared: true },
        { key: b, limit: 2 },
      ],
      60_000,
      "gone",
    );
    assert.match(await tell(server.port, wanted.acquire(0)), /^ok 200 /);
    await using _reader = await locks.acquire(a, { shared: true });
    await using _slot = await locks.acquire(b, { limit: 2 });
    const cluster = new Cluster([Address.parse(server.address)], new Options({}));
    await withdraw(new Scope(), cluster, wanted);
    await isHeld(a);
    await locks.using(b, { limit: 2, wait: 0 }, () => {});
  });

  test("is released when the client is closed", async () => {
    const other = new lockd.Client(server.address);
    const held = await other.acquireAll([a, b], { lease: 60_000 });
    await other.close();
    assert.ok(!held.isHeld);
    await isFree(a);
    await isFree(b);
  });

  test("survives a server that is killed, while held and while waited for", async () => {
    using journal = new Folder();
    await using other = await Server.begin("--wal", journal.path);
    await using there = new lockd.Client(other.address);
    const held = await there.acquireAll(["a", "b"], { lease: 3000 });
    const waiting = there.acquireAll(["b", "c"], { wait: 60_000 });
    await eventually(async () => {
      const { locks: all } = await there.stats();
      return all.some((lock) => lock.waiters === 1);
    }, "a waiter");
    await other.kill();
    await other.start();
    await sleep(3500);
    held.check();
    await held.release();
    const next = await waiting;
    assert.ok(next.queuedAgain);
    await next.release();
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

  test("are not sent to a server that would misunderstand", async () => {
    const silent: Script = (peer) => peer.waitClosed();
    await using fake = await FakeServer.begin(refusesClient, silent);
    await using client = new lockd.Client(fake.address);
    await failure(lockd.Unsupported, client.acquireAll(["a", "b"]));
    assert.deepEqual(fake.commands, ["client"]);
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

  const answered = async (line: string) => {
    await using fake = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("api", line);
      await peer.waitClosed();
    });
    await using client = new lockd.Client(fake.address);
    return await failure(lockd.LockdError, client.acquireAll(["a", "b"], { wait: 0 }));
  };

  test("are answered with who is in the way", async () => {
    const [first, second] = [
      '{"key":"a","waiters":3}',
      '{"key":"b","held_by":{"holder":"bob#1"},"waiters":2}',
    ];
    for (const [conflicts, told] of [
      [`${first},${second}`, ["bob#1", undefined, 2]],
      ["", [undefined, undefined, undefined]],
      [first, [undefined, undefined, undefined]],
      ['{"held_by":7},{"held_by":{"holder":7}},7', [undefined, undefined, undefined]],
    ] as const) {
      const busy = await answered(`ok 409 {"error":"held","conflicts":[${conflicts}]}`);
      assert.ok(busy instanceof lockd.NotAcquired);
      assert.deepEqual([busy.holder, busy.client, busy.waiters], told);
    }
  });

  test("are answered with why", async () => {
    for (const [status, code, kind] of [
      [429, "max_locks", lockd.TooManyKeys],
      [429, "max_waiters", lockd.TooManyWaiters],
      [429, "max_holds", lockd.TooManyHolds],
      [503, "storage", lockd.StorageFull],
      [503, "draining", lockd.Draining],
      [503, "not_leader", lockd.NotLeader],
      [403, "denied", lockd.Denied],
      [401, "unauthorized", lockd.Unauthorized],
      [400, "bad_request", lockd.Refused],
      [409, "held", lockd.NotAcquired],
    ] as const) {
      const error = await answered(`ok ${status} {"error":"${code}","detail":"because"}`);
      assert.ok(isExactly(error, kind), `${code} is ${error.name}`);
    }
    for (const line of ["ok", "ok 200", "ok 200 {", "ok 200 []", 'ok 200 {"token":1}', "ok x {}"]) {
      assert.ok(isExactly(await answered(line), lockd.Garbled), line);
    }
  });

  test("that were given up are withdrawn", async () => {
    // The grant was under way when its client left: nobody heard of it.
    const grantsLate: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.expect("api");
      await peer.waitClosed();
    };
    const answers =
      (line: string): Script =>
      async (peer) => {
        await peer.answer("client", "ok");
        await peer.answer("api", line);
        await peer.waitClosed();
      };
    await using fake = await FakeServer.begin(
      grantsLate,
      answers('ok 200 {"token":7,"ttl_ms":1000}'),
      answers('ok 200 {"released":["a","b"],"not_held":[]}'),
    );
    await using client = new lockd.Client(fake.address);
    const signal = AbortSignal.timeout(200);
    await failure(lockd.Cancelled, client.acquireAll(["a", "b"], { signal }));
    await eventually(() => fake.argumentsOf("api").length === 3, "a release");
    const calls = fake.seen.filter(([command]) => command === "api");
    assert.deepEqual(
      calls.map(([, call]) => call),
      ["POST /v1/acquire", "POST /v1/acquire", "POST /v1/release"],
    );
    const [acquire, again, release] = calls.map(([, , said]) => JSON.parse(said));
    const named = { keys: ["a", "b"], holder: acquire.holder };
    assert.deepEqual(again, { ...named, ttl_ms: 1000 });
    assert.deepEqual(release, { ...named, token: 7 });
  });

  test("are answered by the next leader", async () => {
    await using one = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("barrier", "ok");
      await peer.answer("api", 'ok 200 {"token":7,"ttl_ms":3000}');
      await peer.answer("api", 'ok 503 {"error":"not_leader","detail":"it follows"}');
      await peer.waitClosed();
    });
    await using two = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      for (;;) await peer.answer("api", 'ok 200 {"token":7,"ttl_ms":3000}');
    });
    await using client = new lockd.Client({ cluster: [one.address, two.address] });
    const held = await client.acquireAll(["a", "b"], { lease: 3000 });
    await eventually(() => two.commands.includes("api"), "a renewal by the next leader");
    assert.equal(two.seen[1]?.[1], "POST /v1/renew");
    await sleep(2500);
    held.check();
    await held.release();
  });
});
