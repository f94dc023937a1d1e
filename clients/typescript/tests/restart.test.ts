/** Servers that are stopped, killed and started again, while a client holds and while it waits. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import { eventually, Folder, lossOf, PATIENCE, Server, sleep } from "./support.js";

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
    test(`is held and waited for through: ${end}`, async () => {
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

  test("that stands still for a while changes nothing", async () => {
    await using held = await locks.acquire("k", { lease: 4000 });
    server.signal("SIGSTOP");
    await sleep(2000);
    server.signal("SIGCONT");
    await sleep(3000);
    held.check();
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
});
