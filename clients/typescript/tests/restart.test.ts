/** Servers that are stopped, killed and started again, while a client holds and while it waits. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import { eventually, Folder, failure, lossOf, now, PATIENCE, Server, sleep } from "./support.js";

describe("a server with a journal", () => {
  let journal: Folder;
  let server: Server;
  let locks: lockd.Client;
  let other: lockd.Client;

  beforeEach(async () => {
    journal = new Folder();
    server = await Server.begin("--wal", journal.path, "--shutdown-timeout", "1");
    locks = new lockd.Client({ servers: server.address, releaseTimeout: 2000 });
    other = new lockd.Client({ servers: server.address, releaseTimeout: 2000 });
  });

  afterEach(async () => {
    await Promise.all([locks.close(), other.close()]);
    await server[Symbol.asyncDispose]();
    journal[Symbol.dispose]();
  });

  const aWaiter = () =>
    eventually(async () => (await locks.stats()).locks[0]?.waiters === 1, "a waiter");

  for (const end of ["stop", "kill"] as const) {
    test(`is held through: ${end}`, async () => {
      const held = await locks.acquire("k", { lease: 12_000 });
      await server[end]();
      const certainUntil = now() + held.remaining;
      await server.start();
      await eventually(() => now() + held.remaining > certainUntil + 100, "a renewal by its token");
      held.check();
      await failure(lockd.NotAcquired, locks.acquire("k", { wait: 0 }));
      await held.release();
      await locks.using("k", { wait: 0 }, () => {});
    });

    test(`is waited for through: ${end}`, async () => {
      const held = await locks.acquire("k", { lease: 30_000 });
      const waiting = other.acquire("k", { wait: 60_000 });
      await aWaiter();
      await server[end]();
      await sleep(300);
      await server.start();
      await aWaiter();
      await eventually(() => held.isHeld, "a renewal on a new connection");
      assert.ok(!held.queuedAgain);
      await held.release();
      const turn = await waiting;
      assert.ok(turn.queuedAgain);
      assert.ok(turn.fence > held.fence);
      await turn.release();
    });
  }

  test("is waited for until the wait's own deadline", async () => {
    const held = await locks.acquire("k", { lease: 30_000 });
    const began = now();
    const waiting = failure(lockd.NotAcquired, locks.acquire("k", { wait: 3000 }));
    await aWaiter();
    await server.kill();
    await server.start();
    const busy = await waiting;
    assert.ok(now() - began >= 3000);
    assert.ok(busy.queuedAgain);
    await held.release();
  });

  test("that stays away is believed for no longer than the lease", async () => {
    const losses: lockd.LockLost[] = [];
    const held = await locks.acquire("k", { lease: 2000, onLost: (loss) => losses.push(loss) });
    const granted = now();
    await server.kill();
    for (let asked = now(); held.isHeld; asked = now()) {
      assert.ok(asked - granted < 4000); // one renewal may have been confirmed
      await sleep(5);
    }
    await eventually(() => losses.length > 0, "the callback");
    assert.equal(losses[0]?.reason, "unsure");
  });

  test("is asked for a place again", async () => {
    const held = await locks.acquire("k", { lease: 30_000 });
    const place = await locks.enqueue("k");
    await server.kill();
    await server.start();
    await sleep(500);
    await held.release();
    await using turn = await place.wait({ wait: PATIENCE });
    assert.ok(turn.queuedAgain);
  });

  test("that stands still for a while changes nothing", async () => {
    await using held = await locks.acquire("k", { lease: 4000 });
    server.signal("SIGSTOP");
    await sleep(2000);
    server.signal("SIGCONT");
    await sleep(3000);
    held.check();
  });

  test("that is drained serves its holders", async () => {
    const held = await locks.acquire("k", { lease: 30_000 });
    server.signal("SIGTERM");
    await sleep(200);
    held.check();
    await held.release();
  });
});

describe("a server without a journal", () => {
  test("loses the lock at a restart, and its owner is told", async () => {
    await using server = await Server.begin();
    await using locks = new lockd.Client(server.address);
    const held = await locks.acquire("k", { lease: 30_000 });
    await server.kill();
    await server.start();
    assert.equal((await lossOf(held))?.reason, "refused");
    await locks.using("k", { wait: PATIENCE }, () => {});
  });

  test("is waited for when it is down", async () => {
    await using server = await Server.begin();
    await using locks = new lockd.Client(server.address);
    await server.kill();
    const started = sleep(700).then(() => server.start());
    await using held = await locks.acquire("k", { wait: PATIENCE });
    assert.ok(!held.queuedAgain);
    await started;
  });
});
