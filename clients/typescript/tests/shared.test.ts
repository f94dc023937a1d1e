/** Locks that many hold together, and jobs that need several permits of a semaphore. */

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import {
  eventually,
  FakeServer,
  Folder,
  failure,
  grants,
  PATIENCE,
  refusesClient,
  type Script,
  Server,
  shareServer,
  sleep,
} from "./support.js";

const { locks, nextKey } = await shareServer();
let key = "";

beforeEach(() => {
  key = nextKey();
});

const queueOf = (length: number) =>
  eventually(async () => {
    const { locks: all } = await locks.stats();
    return all.find((lock) => lock.key === key)?.waiters === length;
  }, `a queue of ${length}`);

/** That a try is refused. */
const isHeld = (options: lockd.AcquireOptions = {}) =>
  failure(lockd.NotAcquired, locks.acquire(key, { ...options, wait: 0 }));

describe("a shared lock", () => {
  test("is held by readers together, and the writer waits for all", async () => {
    const one = await locks.acquire(key, { shared: true, wait: 0 });
    const two = await locks.acquire(key, { shared: true, wait: 0 });
    await isHeld();
    await one.release();
    await isHeld();
    await two.release();
    await using writer = await locks.acquire(key, { wait: 0 });
    assert.ok(one.fence < two.fence && two.fence < writer.fence);
    await isHeld({ shared: true });
  });

  test("lets no reader overtake a writer", async () => {
    const order: string[] = [];
    const hold = (who: string, shared: boolean) =>
      locks.using(key, { shared, wait: PATIENCE }, () => order.push(who));
    const reader = await locks.acquire(key, { shared: true });
    const writer = hold("writer", false);
    await queueOf(1);
    const late = hold("late reader", true);
    await queueOf(2);
    await isHeld({ shared: true });
    assert.deepEqual(order, []);
    await reader.release();
    await Promise.all([writer, late]);
    assert.deepEqual(order, ["writer", "late reader"]);
  });

  test("is had in two phases", async () => {
    const first = await locks.enqueue(key, { shared: true });
    const second = await locks.enqueue(key, { shared: true, lease: 7000 });
    const writer = await locks.enqueue(key);
    assert.deepEqual(
      [first, second, writer].map((place) => place.isGranted),
      [true, true, false],
    );
    await (await first.wait()).release();
    await using held = await second.wait();
    assert.equal(held.lease, 7000);
    await failure(lockd.NotAcquired, writer.wait({ wait: 0 }));
  });

  test("renews itself", async () => {
    await using one = await locks.acquire(key, { shared: true, lease: 1000 });
    await using two = await locks.acquire(key, { shared: true, lease: 1000 });
    await sleep(1600);
    one.check();
    two.check();
  });

  test("survives a server that is killed", async () => {
    using journal = new Folder();
    await using other = await Server.begin("--wal", journal.path);
    await using there = new lockd.Client(other.address);
    const readers = [
      await there.acquire("k", { shared: true, lease: 20_000 }),
      await there.acquire("k", { shared: true, lease: 20_000 }),
    ];
    await other.kill();
    await other.start();
    await failure(lockd.NotAcquired, there.acquire("k", { wait: 0 }));
    for (const reader of readers) await reader.release();
    await there.using("k", { wait: 0 }, () => {});
  });
});

describe("permits", () => {
  test("of a job of four are not taken by small ones before it", async () => {
    const pool = await locks.acquire(key, { limit: 5, permits: 2 });
    const job = await locks.enqueue(key, { limit: 5, permits: 4, lease: 20_000 });
    const small = await locks.enqueue(key, { limit: 5 });
    assert.deepEqual([job.isGranted, small.isGranted], [false, false]);
    await isHeld({ limit: 5 }); // three are free, and not for it
    await pool.release();
    const four = await job.wait({ wait: PATIENCE });
    await using one = await small.wait({ wait: PATIENCE });
    assert.equal(four.lease, 20_000);
    assert.ok(four.fence < one.fence);
    await isHeld({ limit: 5 });
    await four.release();
    await isHeld({ limit: 5, permits: 5 });
    await locks.using(key, { limit: 5, permits: 4, wait: 0 }, () => {});
  });

  test("renew themselves", async () => {
    await using held = await locks.acquire(key, { limit: 5, permits: 4, lease: 1000 });
    await sleep(1600);
    held.check();
    await isHeld({ limit: 5, permits: 2 });
  });
});

describe("requests", () => {
  test("say what they share", async () => {
    for (const [share, argument] of [
      [{}, "3"],
      [{ shared: false }, "3"],
      [{ shared: true }, "3 shared"],
      [{ shared: true, lease: 9000 }, "3 9 shared"],
      [{ limit: 5, permits: 1 }, "3 5"],
      [{ limit: 5, permits: 4 }, "3 5 33 4"],
      [{ limit: 5, permits: 4, lease: 9000 }, "3 5 9 4"],
    ] as const) {
      await using fake = await FakeServer.begin(grants());
      await using client = new lockd.Client(fake.address);
      await client.using("k", { wait: 3000, ...share }, () => {});
      assert.match(fake.seen[1]?.[2] ?? "", new RegExp(`^${argument} as=[0-9a-f]{16}$`));
    }
  });

  test("are not sent to a server that would misunderstand", async () => {
    const silent: Script = (peer) => peer.waitClosed();
    await using fake = await FakeServer.begin(refusesClient, silent);
    await using client = new lockd.Client(fake.address);
    for (const share of [{ shared: true }, { limit: 5, permits: 4 }]) {
      const refused = await failure(lockd.Unsupported, client.acquire("k", share));
      assert.match(refused.message, /no shared locks/);
      await failure(lockd.Unsupported, client.enqueue("k", share));
    }
    assert.deepEqual(fake.commands, ["client"]);
  });

  test("that differ from what was asked before are refused", async () => {
    for (const [reply, kind] of [
      ["error_mode_mismatch", lockd.ModeMismatch],
      ["error_permits_mismatch", lockd.PermitsMismatch],
    ] as const) {
      await using fake = await FakeServer.begin(async (peer) => {
        await peer.answer("client", "ok");
        await peer.answer("l", reply);
        await peer.waitClosed();
      });
      await using client = new lockd.Client(fake.address);
      const refused = await failure(kind, client.acquire("k", { shared: true }));
      assert.equal(refused.reply, reply);
    }
  });
});
