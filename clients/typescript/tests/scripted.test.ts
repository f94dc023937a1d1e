/**
 * What callers in TypeScript see of a server that plays a script.
 *
 * What all clients do at such servers is in `clients/conformance`.
 */

import assert from "node:assert/strict";
import dns from "node:dns";
import { describe, test } from "node:test";

import * as lockd from "../src/index.js";
import {
  eventually,
  FakeServer,
  failure,
  freePort,
  grants,
  grantsOnce,
  lossOf,
  now,
  PATIENCE,
  type Peer,
  sleep,
  TOKEN,
} from "./support.js";

function clientOf(server: FakeServer, options: lockd.ClientOptions = {}): lockd.Client {
  return new lockd.Client({
    servers: server.address,
    connectTimeout: 5000,
    replyTimeout: 5000,
    releaseTimeout: 1000,
    ...options,
  });
}

describe("identity", () => {
  test("is told first", async () => {
    await using server = await FakeServer.begin(grants());
    await using locks = clientOf(server, { name: "billing", note: "n" });
    await locks.using("k", {}, () => {});
    assert.deepEqual(server.seen[0], ["client", "billing", "n"]);
    assert.deepEqual(server.commands, ["client", "l", "r"]);
  });

  test("is user, host and process by default", async () => {
    await using server = await FakeServer.begin(grants());
    await using locks = clientOf(server);
    await locks.using("k", {}, () => {});
    assert.match(server.seen[0]?.[1] ?? "", /^[^@]+@[^:]+:\d+$/);
    assert.equal(server.seen[0]?.[2], "scripted.test.js");
  });

  test("is fit for a line whatever the program is called", async () => {
    const program = process.argv[1];
    try {
      for (const [path, note] of [
        ["/a/b\nc\ud800", "bc"],
        ["😀".repeat(500), "😀".repeat(64)],
        [undefined, "node"],
      ] as const) {
        process.argv[1] = path as string;
        await using server = await FakeServer.begin(grants());
        await using locks = clientOf(server);
        await locks.using("k", {}, () => {});
        assert.equal(server.seen[0]?.[2], note);
      }
    } finally {
      process.argv[1] = program as string;
    }
  });

  test("comes behind the auth token", async () => {
    await using server = await FakeServer.begin(grants());
    await using locks = clientOf(server, { token: " secret\n" });
    await locks.using("k", {}, () => {});
    assert.deepEqual(server.seen[0], ["auth", "_", "secret"]);
    assert.deepEqual(server.commands, ["auth", "client", "l", "r"]);
  });
});

describe("losses", () => {
  /** The lease is so long that only the server's notification can end the hold. */
  const notifiesOfLoss = (cause: string) =>
    grantsOnce(3000, async (peer) => {
      await sleep(50);
      peer.send(`lost ${TOKEN} ${cause} k\n`);
      await peer.waitClosed();
    });

  test("are told by the server", async () => {
    for (const cause of ["expired", "revoked", "by-some-cause-of-tomorrow"]) {
      await using server = await FakeServer.begin(notifiesOfLoss(cause));
      await using locks = clientOf(server, { releaseTimeout: 100 });
      const losses: lockd.LockLost[] = [];
      const held = await locks.acquire("k", { onLost: (loss) => losses.push(loss) });
      await lossOf(held);
      assert.equal(losses.length, 1);
      assert.equal(losses[0]?.reason, cause);
      assert.equal(held.signal.reason, losses[0]);
      assert.throws(() => held.check(), losses[0]);
      await assert.rejects(held.release(), losses[0]);
    }
  });

  test("that come after the release are nothing", async () => {
    const losses: lockd.LockLost[] = [];
    await using server = await FakeServer.begin(
      grantsOnce(3000, async (peer) => {
        await peer.answer("r", `lost ${TOKEN} expired k`, "ok");
        await peer.waitClosed();
      }),
    );
    await using locks = clientOf(server);
    const held = await locks.acquire("k", { onLost: (loss) => losses.push(loss) });
    await held.release();
    await sleep(50);
    assert.deepEqual(losses, []);
  });

  test("abort what goes on, in the manner of Node's own functions", async () => {
    await using server = await FakeServer.begin(notifiesOfLoss("revoked"));
    await using locks = clientOf(server);
    const { setTimeout: wait } = await import("node:timers/promises");
    const error = await failure(Error, async () => {
      await using held = await locks.acquire("k");
      await wait(PATIENCE, undefined, { signal: held.signal });
    });
    assert.equal(lockd.LockLost.behind(error)?.reason, "revoked");
    const plain = await failure(Error, () =>
      locks.using("k", {}, (held) => wait(PATIENCE, undefined, { signal: held.signal })),
    );
    assert.equal(plain.name, "AbortError");
    assert.equal(lockd.LockLost.behind(plain)?.reason, "revoked");
  });
});

describe("certainty", () => {
  test("is kept beside a connection that answers no more, which is not left", async () => {
    let isLeft = false;
    const mute = grantsOnce(4, async (peer) => {
      await peer.waitClosed();
      isLeft = true;
    });
    await using server = await FakeServer.begin(mute, grants(4));
    await using locks = clientOf(server);
    {
      await using held = await locks.acquire("k", { lease: 4000 });
      await eventually(() => server.argumentsOf("n").length >= 3, "renewals");
      await sleep(50);
      held.check();
      assert.ok(!isLeft, "to leave would be to release");
    }
    await eventually(() => isLeft, "an end");
  });
});

describe("who is in the way", () => {
  async function told(answer: string, limit?: number): Promise<lockd.NotAcquired> {
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer(limit === undefined ? "l" : "sl", "timeout");
      await peer.answer("api", answer);
      await peer.waitClosed();
    });
    await using locks = clientOf(server);
    const busy = await failure(lockd.NotAcquired, locks.acquire("a key é", { wait: 0, limit }));
    assert.deepEqual(server.seen.at(-1), ["api", "GET /v1/locks", '{"key":"a key é"}']);
    assert.equal(server.commands.length, 3);
    return busy;
  }

  const conflictOf = ({ holder, client, waiters }: lockd.NotAcquired) => [holder, client, waiters];

  test("is told of the kind that is wanted", async () => {
    const line =
      'ok 200 {"locks":[{"kind":"semaphore","waiters":9,"holds":[{"holder":"x"}]},' +
      '{"kind":"lock","waiters":2,"holds":[{"holder":"tcp:17","client":"ann@build-7:4711"}]}]}';
    const lock = await told(line);
    assert.deepEqual(conflictOf(lock), ["tcp:17", "ann@build-7:4711", 2]);
    assert.match(lock.message, /held by "ann@build-7:4711"$/);
    const semaphore = await told(line, 3);
    assert.deepEqual(conflictOf(semaphore), ["x", undefined, 9]);
    assert.match(semaphore.message, /held by "x"$/);
    const mistyped =
      'ok 200 {"locks":[{"kind":"lock","waiters":-1,"holds":[{"holder":"a","client":7}]}]}';
    assert.deepEqual(conflictOf(await told(mistyped)), ["a", undefined, undefined]);
  });
});

describe("waits", () => {
  test("for a server that is down go on until the deadline", async () => {
    const warnings: string[] = [];
    await using locks = new lockd.Client({
      servers: `127.0.0.1:${await freePort()}`,
      warn: (message) => warnings.push(message),
    });
    const began = now();
    await failure(lockd.Unreachable, locks.acquire("k", { wait: 1000 }));
    assert.ok(now() - began < 1000 + PATIENCE);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /cannot be reached.*; trying again$/);
    await failure(lockd.Unreachable, locks.acquire("k", { wait: 0 }));
    await failure(lockd.Unreachable, locks.stats());
  });

  test("are given up at any moment, with the reason", async () => {
    for (const script of [
      async (peer: Peer) => peer.waitClosed(),
      async (peer: Peer) => {
        await peer.answer("client", "ok");
        await peer.waitClosed();
      },
    ]) {
      let isLeft = false;
      await using server = await FakeServer.begin(async (peer) => {
        await script(peer);
        isLeft = true;
      });
      await using locks = clientOf(server);
      const controller = new AbortController();
      setTimeout(() => controller.abort("enough"), 100);
      const waiting = locks.acquire("k", { signal: controller.signal });
      assert.equal((await failure(lockd.Cancelled, waiting)).cause, "enough");
      await eventually(() => isLeft, "an end");
      await failure(lockd.Cancelled, locks.acquire("k", { signal: controller.signal }));
      assert.equal(server.connections, 1);
    }
    await using nobody = new lockd.Client(`127.0.0.1:${await freePort()}`);
    await failure(lockd.Cancelled, nobody.acquire("k", { signal: AbortSignal.timeout(100) }));
  });
});

describe("releases", () => {
  test("do not wait for ever", async () => {
    await using server = await FakeServer.begin(grantsOnce(30, (peer) => peer.waitClosed()));
    const warnings: string[] = [];
    await using locks = clientOf(server, {
      releaseTimeout: 300,
      warn: (message) => warnings.push(message),
    });
    const held = await locks.acquire("k");
    await failure(lockd.ConnectionFailed, held.release());
    assert.ok(!held.isHeld);
    await held.release(); // once is enough
    await locks.using("k", {}, () => {}); // the end of a block leaves it to the lease
    assert.match(warnings.at(-1) ?? "", /is left to its lease/);
  });
});

describe("clusters", () => {
  /** A server that names the leader when a client asks it `barrier`. */
  const follower = (leader: string) =>
    FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("barrier", `error_not_leader ${leader}`);
    });
  const clusterOf = (...servers: { address: string }[]) =>
    new lockd.Client({ cluster: servers.map((one) => one.address), connectTimeout: 5000 });

  test("have a leader that is found by its name", async () => {
    await using leader = await FakeServer.begin(grants());
    await using one = await follower(leader.address);
    await using two = await follower(leader.address);
    await using locks = clusterOf(one, two, leader);
    await locks.using("k", {}, () => assert.equal(locks.serverOf("k"), leader.address));
    await locks.using("k", {}, () => {});
    assert.deepEqual([one.connections, two.connections, leader.connections], [1, 0, 2]);
  });

  test("tell the statistics of one of them", async () => {
    await using one = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("stats", 'ok {"connections":7}');
    });
    await using locks = clusterOf(one, { address: `127.0.0.1:${await freePort()}` });
    assert.equal((await locks.stats({ server: one.address })).connections, 7);
    assert.deepEqual(one.commands, ["client", "stats"], "whether it leads or not");
  });
});

describe("names", () => {
  test("that lead nowhere", async () => {
    await using locks = new lockd.Client({ servers: "no-such-host.invalid", connectTimeout: 3000 });
    await failure(lockd.Unreachable, locks.acquire("k", { wait: 0 }));
  });

  test("a name server that is gone takes nobody with it", async () => {
    const real = dns.lookup;
    let lookups = 0;
    const flaky = (host: string, options: object, done: (...given: unknown[]) => void) => {
      if (host !== "locks.test") return Reflect.apply(real, dns, [host, options, done]);
      lookups += 1;
      if (lookups === 1) return Reflect.apply(real, dns, ["127.0.0.1", options, done]);
      return done(Object.assign(new Error("gone"), { code: "EAI_AGAIN", syscall: "getaddrinfo" }));
    };
    await using server = await FakeServer.begin(grants());
    await using locks = new lockd.Client(`locks.test:${server.port}`);
    try {
      dns.lookup = flaky as unknown as typeof dns.lookup;
      for (const _ of [1, 2]) await locks.using("k", { wait: 0 }, () => {});
    } finally {
      dns.lookup = real;
    }
    assert.equal(lookups, 2);
    assert.equal(server.connections, 2);
  });
});
