// What the published TypeScript client does with the server, each case with servers of its own.
//
//   DFLOCKD=path node --test-reporter=tap cases.mjs
//
// The client is `dflockd-client`, from the node_modules beside this file. What its version does not
// have is skipped by name.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import * as client from "dflockd-client";

const { DistributedLock, DistributedSemaphore } = client;
const LEASE_S = 2;
const PATIENCE_S = 20;

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

/** Waits until it is so, and keeps the process alive: the client's own timers do not. */
async function eventually(isSo) {
  for (let waited = 0; !isSo() && waited < PATIENCE_S; waited += 0.01) await sleep(0.01);
}

/** Its address, as the client takes it. It ends with the test. */
async function start(t, ...flags) {
  const child = spawn(process.env.DFLOCKD, ["--host", "127.0.0.1", "--port", "0", ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child.stderr })) {
    const found = /listening .*port=(\d+)/.exec(line);
    if (found) return { process: child, address: ["127.0.0.1", Number(found[1])] };
  }
  throw new Error("the server does not start");
}

/** Makes locks of a server, and closes them when the test ends, so that nothing is left waiting. */
function locksAt(t, ...servers) {
  return (key, options = {}) => {
    const { limit } = options;
    const all = { key, servers: servers.map(({ address }) => address), ...options };
    const lock = limit === undefined ? new DistributedLock(all) : new DistributedSemaphore(all);
    t.after(() => lock.close());
    return lock;
  };
}

const fenceOf = (lock) => BigInt(`0x${lock.token.slice(0, 16)}`);

test("a lock excludes, in the order of asking", async (t) => {
  const lock = locksAt(t, await start(t));
  const [first, second, third] = [lock("k"), lock("k"), lock("k")];
  assert.equal(await first.acquire(), true);
  const order = [];
  const waiting = [];
  for (const [name, one] of [
    ["second", second],
    ["third", third],
  ]) {
    assert.equal(await one.enqueue(), "queued");
    waiting.push(one.wait(PATIENCE_S).then((granted) => order.push(name, granted)));
  }
  const fence = fenceOf(first);
  await first.release();
  await waiting[0];
  assert.deepEqual(order, ["second", true]);
  assert.ok(fenceOf(second) > fence);
  await second.release();
  await waiting[1];
  assert.deepEqual(order, ["second", true, "third", true]);
  await third.release();
});

test("a wait ends without the lock, and not before its time", async (t) => {
  const lock = locksAt(t, await start(t));
  assert.equal(await lock("k").acquire(), true);
  const began = performance.now();
  assert.equal(await lock("k", { acquireTimeoutS: 1 }).acquire(), false);
  assert.ok(performance.now() - began >= 1000);
  assert.equal(await lock("k", { acquireTimeoutS: 0 }).acquire(), false);
  await assert.rejects(
    lock("k", { acquireTimeoutS: 0 }).withLock(() => {}),
    client.AcquireTimeoutError,
  );
});

test("a block holds the lock, and passes on what it throws", async (t) => {
  const lock = locksAt(t, await start(t));
  assert.equal(await lock("k").withLock(() => "done"), "done");
  const failure = new Error("of the block");
  const throws = () => {
    throw failure;
  };
  await assert.rejects(lock("k").withLock(throws), failure);
  assert.equal(await lock("k", { acquireTimeoutS: 0 }).acquire(), true);
});

test("two phases: a free lock is acquired at once", async (t) => {
  const lock = locksAt(t, await start(t));
  const one = lock("k");
  assert.equal(await one.enqueue(), "acquired");
  assert.equal(await one.wait(0), true);
  assert.equal(one.lease > 0, true);
});

test("a lock is renewed for longer than its lease", async (t) => {
  const lock = locksAt(t, await start(t));
  const held = lock("k", { leaseTtlS: LEASE_S });
  assert.equal(await held.acquire(), true);
  assert.equal(held.lease, LEASE_S);
  await sleep(2 * LEASE_S);
  assert.equal(await lock("k", { acquireTimeoutS: 0 }).acquire(), false);
  assert.notEqual(held.token, null);
  await held.release();
  assert.equal(await lock("k", { acquireTimeoutS: 0 }).acquire(), true);
});

test("a holder that goes away leaves the lock to the next", async (t) => {
  const lock = locksAt(t, await start(t));
  const gone = lock("k");
  assert.equal(await gone.acquire(), true);
  const next = lock("k", { acquireTimeoutS: PATIENCE_S });
  const waiting = next.acquire();
  gone.close();
  assert.equal(await waiting, true);
});

test("a server that goes away is a loss", async (t) => {
  const server = await start(t);
  const lost = [];
  const onLockLost = (key) => lost.push(key);
  const held = locksAt(t, server)("k", { leaseTtlS: LEASE_S, onLockLost });
  if (held.onLockLost === undefined) return t.skip("this version tells nobody");
  assert.equal(await held.acquire(), true);
  server.process.kill("SIGKILL");
  await eventually(() => lost.length > 0);
  assert.deepEqual(lost, ["k"]);
});

test("a semaphore lets in as many as its limit", async (t) => {
  const lock = locksAt(t, await start(t));
  const slots = [1, 2, 3].map(() => lock("s", { limit: 2, acquireTimeoutS: 0 }));
  assert.equal(await slots[0].acquire(), true);
  assert.equal(await slots[1].acquire(), true);
  assert.equal(await slots[2].acquire(), false);
  await slots[0].release();
  assert.equal(await slots[2].enqueue(), "acquired");
  assert.equal(await lock("s").acquire(), true); // a lock of the same key is another thing
  await assert.rejects(lock("s", { limit: 3 }).acquire(), client.LockError);
});

test("several servers share the keys as all clients have it", async (t) => {
  const servers = [await start(t), await start(t), await start(t)];
  const lock = locksAt(t, ...servers);
  assert.equal(client.stableHashShard("my-key", 3), 2);
  assert.equal(await lock("my-key").acquire(), true);
  assert.equal(await locksAt(t, servers[2])("my-key", { acquireTimeoutS: 0 }).acquire(), false);
  assert.equal(await locksAt(t, servers[0])("my-key", { acquireTimeoutS: 0 }).acquire(), true);
});

test("an auth token lets in, and another does not", async (t) => {
  if (client.AuthError === undefined) return t.skip("this version knows no auth token");
  const lock = locksAt(t, await start(t, "--auth-token", "a secret"));
  assert.equal(await lock("k", { auth: "a secret" }).acquire(), true);
  await assert.rejects(lock("k", { auth: "a guess" }).acquire(), client.AuthError);
});

test("TLS", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "lockd-interop-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [certificate, key] = [join(folder, "server.pem"), join(folder, "server.key")];
  const made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test";
  const names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate];
  try {
    execFileSync("openssl", [...made.split(" "), ...names], { stdio: "ignore" });
  } catch {
    return t.skip("there is no openssl to make certificates with");
  }
  const lock = locksAt(t, await start(t, "--tls-cert", certificate, "--tls-key", key));
  const tls = { ca: readFileSync(certificate) };
  assert.equal(await lock("k", { tls }).acquire(), true);
  assert.equal(await lock("k", { tls, acquireTimeoutS: 0 }).acquire(), false);
  await assert.rejects(lock("k", { tls: {} }).acquire());
});

test("statistics name what is held", async (t) => {
  if (client.stats === undefined) return t.skip("this version has no statistics");
  const server = await start(t);
  assert.equal(await locksAt(t, server)("k").acquire(), true);
  const [host, port] = server.address;
  const { connections, locks, semaphores } = await client.stats({ host, port });
  assert.deepEqual([locks.map(({ key }) => key), semaphores], [["k"], []]);
  assert.equal(connections, 2);
});

test("signals reach those who listen, and one of a group", async (t) => {
  if (client.SignalConnection === undefined) return t.skip("this version knows no signals");
  const [host, port] = (await start(t)).address;
  const connect = async () => {
    const connection = await client.SignalConnection.connect({ host, port });
    t.after(() => connection.close());
    return connection;
  };
  const [one, two, emitter] = [await connect(), await connect(), await connect()];
  const heard = [];
  for (const listener of [one, two]) {
    await listener.listen("jobs.*", "workers");
    listener.onSignal(({ channel, payload }) => heard.push(`${channel} ${payload}`));
  }
  await two.listen("orders.>");
  assert.equal(await emitter.emit("jobs.1", "a"), 1);
  assert.equal(await emitter.emit("jobs.2", "b"), 1);
  assert.equal(await emitter.emit("orders.eu.42", "ready"), 1);
  await eventually(() => heard.length === 3);
  assert.deepEqual(heard.sort(), ["jobs.1 a", "jobs.2 b", "orders.eu.42 ready"]);
});
