/** Locks, semaphores and places in queues at a real server. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import {
  eventually,
  failure,
  lossOf,
  now,
  PATIENCE,
  Server,
  shareServer,
  sleep,
  tell,
} from "./support.js";

const LIBRARY = new URL("../src/index.js", import.meta.url).href;

const { server, locks, nextKey } = await shareServer("--default-lease-ttl", "33");
let key = "";

beforeEach(() => {
  key = nextKey();
});

async function waiters(): Promise<number> {
  const { locks: all } = await locks.stats();
  return all.find((lock) => lock.key === key)?.waiters ?? 0;
}

const queueOf = (length: number) =>
  eventually(async () => (await waiters()) === length, `a queue of ${length}`);

/** That a try is refused. */
const isHeld = (options: lockd.AcquireOptions = {}) =>
  failure(lockd.NotAcquired, locks.acquire(key, { ...options, wait: 0 }));

async function releaseByToken(held: lockd.HeldLock): Promise<void> {
  assert.equal(await tell(server.port, `r\n${held.key}\n${held.token}\n`), "ok\n");
}

describe("a lock", () => {
  test("is held for the block", async () => {
    let outside: lockd.HeldLock;
    {
      await using held = await locks.acquire(key, { wait: 10_000, lease: 15_000 });
      outside = held;
      assert.ok(held.isHeld);
      assert.equal(held.loss, undefined);
      assert.ok(!held.signal.aborted);
      held.check();
      assert.deepEqual([held.key, held.lease, held.queuedAgain], [key, 15_000, false]);
      assert.equal(held.fence, BigInt(`0x${held.token.slice(0, 16)}`));
      assert.ok(held.remaining <= 15_000);
      const busy = await failure(lockd.NotAcquired, locks.acquire(key, { wait: 0 }));
      assert.equal(busy.key, key);
    }
    assert.ok(!outside.isHeld);
    assert.equal(outside.remaining, 0);
    assert.ok(outside.signal.aborted);
    const released = await failure(lockd.LockLost, () => outside.check());
    assert.equal(released.reason, "released");
    await outside.release(); // once is enough
    await locks.using(key, { wait: 0 }, () => {});
  });

  test("is held while a function runs", async () => {
    const result = await locks.using(key, { wait: 0 }, async (held) => {
      assert.ok(held.isHeld);
      await failure(lockd.NotAcquired, locks.acquire(key, { wait: 0 }));
      return 42;
    });
    assert.equal(result, 42);
    const own = new Error("the function's own");
    const throws = () => {
      throw own;
    };
    assert.equal(await failure(Error, locks.using(key, { wait: 0 }, throws)), own);
    await locks.using(key, { wait: 0 }, () => {});
  });

  test("is told to be held by whom", async () => {
    await using other = new lockd.Client({ servers: server.address, name: "ann" });
    const alone = await other.acquire(key);
    const permit = await other.acquire(key, { limit: 1 });
    for (const limit of [undefined, 1]) {
      const busy = await failure(lockd.NotAcquired, locks.acquire(key, { wait: 0, limit }));
      assert.match(busy.holder ?? "", /^tcp:\d+$/);
      assert.deepEqual([busy.client, busy.waiters], ["ann", 0]);
    }
    const queued = await locks.enqueue(key);
    const behind = await failure(lockd.NotAcquired, locks.acquire(key, { wait: 0 }));
    assert.deepEqual([behind.client, behind.waiters], ["ann", 1]);
    const late = await failure(lockd.NotAcquired, queued.wait({ wait: 1000 }));
    assert.equal(late.client, "ann");
    await permit.release();
    await alone.release();
  });

  test("has the server's lease by default", async () => {
    await locks.using(key, {}, (held) => assert.equal(held.lease, 33_000));
  });

  test("is one of many", async () => {
    const names = Array.from({ length: 40 }, (_, n) => `${key}/${n}`);
    const held = await Promise.all(names.map((name) => locks.acquire(name, { lease: 2000 })));
    await sleep(3000);
    for (const one of held) one.check();
    await Promise.all(held.map((one) => one.release()));
  });

  test("is held by one of hundreds at a time", async () => {
    let inside = 0;
    const work = async () => {
      await using _ = await locks.acquire(key, { lease: 30_000 });
      inside += 1;
      assert.equal(inside, 1);
      await sleep(0);
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 100 }, work));
  });

  test("outlives nobody's patience: maxHold ends with the lease and not before", async () => {
    const losses: lockd.LockLost[] = [];
    const began = now();
    const held = await locks.acquire(key, {
      lease: 1000,
      maxHold: 1500,
      onLost: (loss) => losses.push(loss),
    });
    while (held.isHeld) await sleep(2);
    assert.ok(now() - began >= 1500);
    assert.ok(now() - began < 1500 + PATIENCE);
    await eventually(() => losses.length > 0, "the callback");
    assert.equal(losses[0]?.reason, "max_hold");
    await locks.using(key, { wait: 5000 }, () => {});
    await failure(lockd.InvalidRequest, locks.acquire(key, { maxHold: 0 }));
  });
});

describe("a wait", () => {
  test("that is bounded is never over early", async () => {
    await using _ = await locks.acquire(key);
    for (const wait of [300, 1000, 1300]) {
      const began = now();
      await failure(lockd.NotAcquired, locks.acquire(key, { wait }));
      assert.ok(now() - began >= wait);
      assert.ok(now() - began < wait + PATIENCE);
    }
  });

  test("that is unbounded ends with the turn", async () => {
    const held = await locks.acquire(key);
    const waiting = locks.acquire(key);
    await queueOf(1);
    await held.release();
    await using next = await waiting;
    assert.ok(next.fence > held.fence);
    assert.ok(!next.queuedAgain);
  });

  test("is given up at once", async () => {
    await using _ = await locks.acquire(key);
    const controller = new AbortController();
    const waiting = failure(lockd.Cancelled, locks.acquire(key, { signal: controller.signal }));
    await queueOf(1);
    controller.abort();
    assert.equal((await waiting).name, "AbortError");
    await queueOf(0);
  });

  test("may have its signal aborted later", async () => {
    const controller = new AbortController();
    await using held = await locks.acquire(key, { signal: controller.signal });
    controller.abort();
    await sleep(20);
    held.check();
  });

  test("ends when the client is closed, which releases", async () => {
    const other = new lockd.Client(server.address);
    const held = await other.acquire(key);
    const { signal } = held;
    const waiting = failure(lockd.Cancelled, other.acquire(key));
    const subscription = await other.listen("x");
    await queueOf(1);
    await other.close();
    await waiting;
    assert.ok(!held.isHeld);
    assert.ok(signal.aborted);
    await failure(lockd.Cancelled, subscription.receive());
    await locks.using(key, { wait: PATIENCE }, () => {}); // the one who waited may have had it
    await failure(lockd.Cancelled, other.acquire(key, { wait: 0 }));
    await other.close();
  });

  test("of which no server hears", async () => {
    for (const options of [{ wait: -1 }, { lease: 0 }, { wait: Number.NaN }, { limit: 1.5 }]) {
      await failure(lockd.InvalidRequest, locks.acquire(key, options));
    }
    await failure(lockd.InvalidRequest, locks.acquire(""));
  });
});

describe("a loss", () => {
  test("by somebody else's release is noticed", async () => {
    const losses: lockd.LockLost[] = [];
    const held = await locks.acquire(key, { lease: 2000, onLost: (loss) => losses.push(loss) });
    await releaseByToken(held);
    const loss = await lossOf(held);
    assert.deepEqual([loss?.reason, loss?.key], ["refused", key]);
    assert.deepEqual(losses, [loss]);
    assert.throws(() => held.check(), lockd.LockLost);
    await failure(lockd.LockLost, held.release());
  });

  test("is told at the end of the block at the latest", async () => {
    await failure(lockd.LockLost, async () => {
      await using held = await locks.acquire(key, { lease: 30_000 });
      await releaseByToken(held);
    });
    await failure(lockd.LockLost, locks.using(key, { lease: 30_000 }, releaseByToken));
  });

  test("hides no error of the block's own", async () => {
    const own = new Error("the block's own");
    const lose = async (held: lockd.HeldLock) => {
      await releaseByToken(held);
      throw own;
    };
    assert.equal(await failure(Error, locks.using(key, {}, lose)), own);
    const both = await failure(Error, async () => {
      await using held = await locks.acquire(key);
      await lose(held);
    });
    assert.equal((both as Error & { suppressed?: unknown }).suppressed, own);
    assert.equal(lockd.LockLost.behind(both)?.reason, "refused");
  });

  test("that check has told is not told twice", async () => {
    const loss = await failure(lockd.LockLost, async () => {
      await using held = await locks.acquire(key, { lease: 1000 });
      await releaseByToken(held);
      await lossOf(held);
      held.check();
    });
    assert.equal(loss.reason, "refused");
  });

  test("may be answered by using the client", async () => {
    let isDone = false;
    const onLost = async () => {
      await locks.using(`${key}, another`, { wait: 5000 }, () => {});
      isDone = true;
    };
    const held = await locks.acquire(key, { lease: 1000, onLost });
    await releaseByToken(held);
    await eventually(() => isDone, "the callback");
  });

  test("is known to a program that blocked its event loop", async () => {
    const held = await locks.acquire(key, { lease: 1000 });
    for (const until = now() + 1300; now() < until; );
    const loss = await failure(lockd.LockLost, () => held.check());
    assert.equal(loss.reason, "unsure");
    // Or the server's line is read before the clock is looked at again.
    assert.match((await lossOf(held))?.reason ?? "", /^(unsure|expired)$/);
  });
});

describe("a process", () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const program of children.splice(0)) program.kill("SIGKILL");
  });
  const child = (program: string, ...flags: string[]) => {
    const begin = `import * as lockd from ${JSON.stringify(LIBRARY)};
      const locks = new lockd.Client(${JSON.stringify(server.address)});
      const key = ${JSON.stringify(key)};`;
    const given = [...flags, "--input-type=module", "-e", begin + program];
    const started = spawn(process.execPath, given, { stdio: ["pipe", "pipe", "inherit"] });
    children.push(started);
    return started;
  };

  test("that stood still holds nothing and knows it", async () => {
    const program = child(`
      const held = await locks.acquire(key, { lease: 1000 });
      console.log("held");
      process.stdin.once("data", () => {
        console.log(held.isHeld, held.loss.reason);
        process.exit();
      });`);
    const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "held");
    program.kill("SIGSTOP");
    await locks.using(key, { wait: PATIENCE }, () => {});
    program.kill("SIGCONT");
    program.stdin.write("\n");
    // Its own clock, the server's line or the answer to a renewal: which comes first is chance.
    assert.match((await lines.next()).value, /^false (unsure|expired|refused)$/);
  });

  test("is kept alive by a wait, and by nothing that is held", async () => {
    const held = await locks.acquire(key);
    const program = child(`
      const subscription = await locks.listen("x");
      const held = await locks.acquire(key, { lease: 60000 });
      console.log(held.isHeld);`);
    const ended = once(program, "exit");
    await queueOf(1);
    await held.release();
    assert.equal(String((await once(program.stdout, "data"))[0]), "true\n");
    assert.deepEqual(await ended, [0, null]);
    await locks.using(key, { wait: PATIENCE }, () => {});
  });

  test("that forgets locks, places and subscriptions gives them up", async () => {
    const program = child(
      `
      process.on("warning", (warning) => console.log(warning.code));
      const ofSignal = key + ", of which there is a signal";
      const forget = async () => {
        await locks.acquire(key);
        const { signal } = await locks.acquire(ofSignal);
        await locks.enqueue(ofSignal);
        await locks.listen("forgotten");
        return signal;
      };
      const signal = await forget();
      setInterval(() => gc(), 50);
      process.stdin.once("data", () => process.exit(signal.aborted ? 1 : 0));`,
      "--expose-gc",
    );
    const ended = once(program, "exit");
    const warned = once(program.stdout, "data");
    await locks.using(key, { wait: PATIENCE }, () => {});
    assert.equal(String((await warned)[0]), "LOCKD_FORGOTTEN\n");
    await eventually(async () => (await locks.publish("forgotten", "x")) === 0, "silence");
    key += ", of which there is a signal";
    await queueOf(0);
    await failure(lockd.NotAcquired, locks.acquire(key, { wait: 0 }));
    program.stdin.write("\n");
    assert.deepEqual(await ended, [0, null]);
  });
});

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
});

describe("a semaphore", () => {
  test("has permits", async () => {
    {
      await using _one = await locks.acquire(key, { limit: 2 });
      await using two = await locks.acquire(key, { limit: 2, lease: 9000 });
      assert.equal(two.lease, 9000);
      await failure(lockd.NotAcquired, locks.acquire(key, { limit: 2, wait: 0 }));
      await failure(lockd.LimitMismatch, locks.acquire(key, { limit: 3, wait: 0 }));
      await locks.using(key, { wait: 0 }, () => {}); // a lock of that name is something else
    }
    await locks.using(key, { limit: 3, wait: 0 }, () => {});
  });

  test("has permits that renew themselves", async () => {
    await using one = await locks.acquire(key, { limit: 5, lease: 1000 });
    await using three = await locks.acquire(key, { limit: 5, permits: 3, lease: 1000 });
    await sleep(1600);
    one.check();
    three.check();
    await isHeld({ limit: 5, permits: 2 });
  });
});

describe("a place", () => {
  test("is waited on in a second phase", async () => {
    const first = await locks.enqueue(key);
    assert.ok(first.isGranted);
    const held = await first.wait({ wait: 0 });
    const second = await locks.enqueue(key, { lease: 7000 });
    assert.ok(!second.isGranted);
    await held.release();
    await using turn = await second.wait({ wait: PATIENCE });
    assert.equal(turn.lease, 7000);
    assert.ok(turn.fence > held.fence);
    assert.ok(!turn.queuedAgain);
    await failure(lockd.InvalidRequest, second.wait());
  });

  test("waits for no longer than it was told", async () => {
    await using _ = await locks.acquire(key);
    const place = await locks.enqueue(key);
    const began = now();
    await failure(lockd.NotAcquired, place.wait({ wait: 400 }));
    assert.ok(now() - began >= 400);
    await queueOf(0);
  });

  test("is given up", async () => {
    {
      await using _ = await locks.acquire(key);
      {
        await using _place = await locks.enqueue(key);
        assert.equal(await waiters(), 1);
      }
      await queueOf(0);
      const place = await locks.enqueue(key);
      const signal = AbortSignal.timeout(50);
      await failure(lockd.Cancelled, place.wait({ signal }));
      await queueOf(0);
    }
    {
      await using granted = await locks.enqueue(key);
      assert.ok(granted.isGranted);
    }
    await locks.using(key, { wait: PATIENCE }, () => {});
  });
});

describe("a server", () => {
  test("has statistics", async () => {
    const holds = async () => (await locks.stats()).locks.some((lock) => lock.key === key);
    await locks.using(key, {}, async () => assert.ok(await holds()));
    assert.ok(!(await holds()));
    assert.ok((await locks.stats({ server: server.address })).connections > 0);
    await failure(lockd.InvalidRequest, locks.stats({ server: "elsewhere:1" }));
  });

  test("is asked small things on one connection", async () => {
    const publishMany = () =>
      Promise.all(Array.from({ length: 50 }, (_, n) => locks.publish("a", String(n))));
    await publishMany();
    const before = (await locks.stats()).connections;
    await publishMany();
    assert.equal((await locks.stats()).connections, before);
  });
});

describe("several servers", () => {
  test("share the keys", async () => {
    await using one = await Server.begin();
    await using two = await Server.begin();
    await using three = await Server.begin();
    const servers = [one.address, two.address, three.address];
    await using all = new lockd.Client(servers);
    assert.equal(all.serverOf("my-key"), three.address);
    for (const name of ["my-key", "orders/42", "my-job"]) {
      await using _ = await all.acquire(name);
      const address = servers[lockd.shardOf(name, 3)];
      assert.ok(address !== undefined);
      assert.equal(all.serverOf(name), address);
      assert.equal((await all.stats({ server: address })).locks[0]?.key, name);
    }
    await failure(lockd.InvalidRequest, all.stats());
  });

  test("are no cluster", () => {
    for (const options of [{ servers: "a", cluster: ["b"] }, [], { cluster: [] }]) {
      assert.throws(() => new lockd.Client(options), lockd.InvalidRequest);
    }
    assert.throws(() => new lockd.Client({ connectTimeout: -1 }), lockd.InvalidRequest);
  });
});
