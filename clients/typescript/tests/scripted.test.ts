/** What a client makes of servers that are newer, older, slow, wrong or gone. */

import assert from "node:assert/strict";
import dns from "node:dns";
import { describe, test } from "node:test";

import * as lockd from "../src/index.js";
import {
  closes,
  eventually,
  FakeServer,
  failure,
  freePort,
  grants,
  grantsOnce,
  isExactly,
  lossOf,
  now,
  PATIENCE,
  type Peer,
  refusesClient,
  type Script,
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

  test("a server that knows it knows secrets of acquisitions", async () => {
    await using server = await FakeServer.begin(grants());
    await using locks = clientOf(server);
    for (const _ of [1, 2]) await locks.using("k", { wait: 3000, lease: 9000 }, () => {});
    const [first, second] = server.argumentsOf("l");
    assert.match(first ?? "", /^3 9 as=[0-9a-f]{16}$/);
    assert.notEqual(first, second);
  });

  test("an older server is asked again without it and remembered", async () => {
    const older: Script = async (peer) => {
      await peer.answer("l", `ok ${TOKEN} 30`);
      await peer.answer("r", "ok");
    };
    await using server = await FakeServer.begin(refusesClient, older);
    await using locks = clientOf(server);
    for (const _ of [1, 2]) await locks.using("k", { wait: 0 }, () => {});
    assert.deepEqual(server.commands, ["client", "l", "r", "l", "r"]);
    assert.deepEqual(server.argumentsOf("l"), ["0", "0"]);
  });

  test("an older server may leave the connection open", async () => {
    const openMinded: Script = async (peer) => {
      await peer.answer("client", "error");
      await peer.waitClosed();
    };
    await using server = await FakeServer.begin(openMinded, grants());
    await using locks = clientOf(server);
    await locks.using("k", { wait: 0 }, () => {});
    assert.equal(server.connections, 2);
  });
});

describe("losses", () => {
  /** Of a lease so long that nothing but a line of the server's can end it. */
  async function told(
    lines: string[],
    wait = PATIENCE,
    options: lockd.AcquireOptions = {},
  ): Promise<{ held: lockd.HeldLock; losses: lockd.LockLost[] }> {
    await using server = await FakeServer.begin(
      grantsOnce(3000, async (peer) => {
        await sleep(50);
        peer.send(lines.map((line) => `${line}\n`).join(""));
        await peer.waitClosed();
      }),
    );
    await using locks = clientOf(server, { releaseTimeout: 100 });
    const losses: lockd.LockLost[] = [];
    const onLost = (loss: lockd.LockLost) => losses.push(loss);
    const held = await locks.acquire("a key", { ...options, onLost });
    await lossOf(held, wait);
    return { held, losses };
  }

  test("by a lease that nobody renewed any more are no surprise", async () => {
    for (const [cause, reason] of [
      ["expired", "max_hold"],
      ["revoked", "revoked"],
    ]) {
      const lines = [`lost ${TOKEN} ${cause} a key`];
      const { losses } = await told(lines, PATIENCE, { maxHold: 1 });
      assert.equal(losses[0]?.reason, reason);
    }
  });

  test("are told by the server", async () => {
    for (const cause of ["expired", "revoked", "by-some-cause-of-tomorrow"]) {
      const { held, losses } = await told([`lost ${TOKEN} ${cause} a key`]);
      assert.equal(losses.length, 1);
      assert.equal(losses[0]?.reason, cause);
      assert.equal(held.signal.reason, losses[0]);
      assert.throws(() => held.check(), losses[0]);
      await assert.rejects(held.release(), losses[0]);
    }
  });

  test("of others are none of ours", async () => {
    const { losses } = await told(["lost x revoked a key", "sig a.b lost"], 300);
    assert.deepEqual(losses, []);
  });

  test("are told among signals", async () => {
    const { losses } = await told(["sig a.b x", `lost ${TOKEN} revoked a key`, "sig a.b x"]);
    assert.equal(losses[0]?.reason, "revoked");
  });

  test("that come before the grant keep it back", async () => {
    // The lock was over before its owner heard of it: what expired is asked for again.
    const lostAs = (cause: string): Script => {
      return async (peer) => {
        await peer.answer("client", "ok");
        await peer.answer("l", `lost ${TOKEN} ${cause} k`, `ok ${TOKEN} 3000`);
        await peer.waitClosed();
      };
    };
    const early = lostAs("expired");
    {
      await using server = await FakeServer.begin(lostAs("revoked"));
      await using locks = clientOf(server);
      const loss = await failure(lockd.LockLost, locks.acquire("k", { wait: 10_000 }));
      assert.equal(loss.reason, "revoked");
    }
    {
      await using server = await FakeServer.begin(early, grants());
      await using locks = clientOf(server);
      await using held = await locks.acquire("k", { wait: 10_000 });
      assert.ok(held.isHeld);
      assert.ok(held.queuedAgain);
    }
    await using server = await FakeServer.begin(early);
    await using locks = clientOf(server);
    await failure(lockd.LeaseExpired, locks.acquire("k", { wait: 0 }));
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
    await using server = await FakeServer.begin(
      grantsOnce(3000, async (peer) => {
        await sleep(50);
        peer.send(`lost ${TOKEN} revoked k\n`);
        await peer.waitClosed();
      }),
    );
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
  const hangs: Script = async (peer) => peer.waitClosed();

  test("counts from the request, not from the reply", async () => {
    // A grant that was a third of the lease under way is renewed before anybody gets it.
    const slow: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.expect("l");
      await sleep(2100);
      peer.send(`ok ${TOKEN} 6\n`);
      await peer.answer("n", "ok 6");
      await peer.waitClosed();
    };
    await using server = await FakeServer.begin(slow, hangs);
    await using locks = clientOf(server);
    const held = await locks.acquire("k", { wait: 5000, lease: 6000 });
    assert.ok(held.remaining > 6000 - 2100, "it was renewed");
    assert.ok(held.remaining <= 6000);
    assert.deepEqual(server.commands, ["client", "l", "n"]);
  });

  test("ends with the lease when the server is silent", async () => {
    const silent = grantsOnce(2, async (peer) => {
      await peer.expect("n");
      await peer.request();
    });
    await using server = await FakeServer.begin(silent, hangs);
    await using locks = clientOf(server);
    const began = now();
    const held = await locks.acquire("k", { lease: 2000 });
    const granted = now();
    for (let asked = granted; held.isHeld; asked = now()) {
      assert.ok(asked - granted < 2000);
      await sleep(2);
    }
    assert.ok(now() - began >= 1900, "it is not given up long before");
    const loss = await lossOf(held);
    assert.equal(loss?.reason, "unsure");
    assert.throws(() => held.check(), lockd.LockLost);
    // Nobody needs it any more, and the server is told.
    await eventually(() => server.commands.includes("r"), "a release");
  });

  test("is revived by no renewal that is confirmed late", async () => {
    const late = grantsOnce(1, async (peer) => {
      await peer.expect("n");
      await sleep(1200);
      peer.send("ok 1\n".repeat(5));
      await peer.waitClosed();
    });
    await using server = await FakeServer.begin(late, hangs);
    await using locks = clientOf(server);
    const held = await locks.acquire("k", { lease: 1000 });
    const loss = await lossOf(held);
    assert.equal(loss?.reason, "unsure");
    for (let step = 0; step < 50; step += 1) {
      assert.ok(!held.isHeld);
      await sleep(10);
    }
  });

  test("is renewed at a third of the lease, by name", async () => {
    await using server = await FakeServer.begin(grants(6));
    await using locks = clientOf(server);
    const began = now();
    await using held = await locks.acquire("k", { lease: 6000 });
    await eventually(() => server.commands.includes("n"), "a renewal");
    assert.ok(now() - began >= 1990);
    assert.ok(now() - began < 6000);
    assert.deepEqual(server.seen.at(-1), ["n", "k", `${TOKEN} 6`]);
    held.check();
  });

  test("is asked for again when a server cannot tell now", async () => {
    const full = grantsOnce(4, async (peer) => {
      await peer.answer("n", "error_storage");
      await peer.answer("n", "error_storage");
      await peer.answer("n", "ok 4");
      await peer.answer("r", "ok");
    });
    await using server = await FakeServer.begin(full);
    await using locks = clientOf(server);
    await using held = await locks.acquire("k", { lease: 4000 });
    await eventually(() => server.argumentsOf("n").length === 3, "three renewals");
    await sleep(50);
    held.check();
  });

  test("is kept on a new connection", async () => {
    await using server = await FakeServer.begin(
      grantsOnce(30, () => sleep(50)),
      grants(30),
    );
    await using locks = clientOf(server);
    const held = await locks.acquire("k", { lease: 30_000 });
    await eventually(() => server.commands.includes("n"), "a renewal");
    await sleep(50);
    await held.release();
    assert.deepEqual(server.commands, ["client", "l", "client", "n", "r"]);
  });

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

  test("is over at once when the server released with the connection", async () => {
    const released: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("n", "error");
    };
    await using server = await FakeServer.begin(grantsOnce(3000), released);
    await using locks = clientOf(server);
    const loss = await lossOf(await locks.acquire("k"));
    assert.equal(loss?.reason, "refused");
  });
});

describe("answers", () => {
  async function failureOf(lines: string[], wait = 0): Promise<lockd.LockdError> {
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("l", ...lines);
      await peer.waitClosed();
    });
    await using locks = clientOf(server, { replyTimeout: 500 });
    return await failure(lockd.LockdError, locks.acquire("k", { wait }));
  }

  test("that make no sense", async () => {
    const long = `ok ${"x".repeat(300)} 30`;
    for (const line of ["", "hello", "ok", "ok x", `ok ${TOKEN} 0`, long]) {
      assert.ok((await failureOf([line])) instanceof lockd.Garbled, line);
    }
  });

  test("that are far too long", async () => {
    assert.ok((await failureOf(["x".repeat(2_000_000)])) instanceof lockd.Garbled);
  });

  test("that do not come", async () => {
    assert.ok((await failureOf([])) instanceof lockd.NoReply);
  });

  test("that say why", async () => {
    for (const [line, kind] of [
      ["error_max_locks", lockd.TooManyKeys],
      ["error_storage", lockd.StorageFull],
      ["error_denied", lockd.Denied],
      ["error_auth", lockd.Unauthorized],
    ] as const) {
      assert.ok(isExactly(await failureOf([line], 9000), kind), line);
    }
    assert.ok(isExactly(await failureOf(["error"]), lockd.Refused));
  });

  test("that are meant are not asked for for ever", async () => {
    assert.ok(isExactly(await failureOf(["error"], 30_000), lockd.Refused));
  });

  test("may end at every byte", async () => {
    const whole = `ok\nok ${TOKEN} 30\n`;
    for (let length = 0; length < whole.length; length += 1) {
      const text = whole.slice(0, length);
      await using server = await FakeServer.begin(async (peer) => {
        await peer.expect("client");
        peer.send(text.slice(0, 3));
        if (text.length < 3) return;
        await peer.expect("l");
        peer.send(text.slice(3));
      });
      await using locks = clientOf(server);
      await failure(lockd.Disconnected, locks.acquire("k", { wait: 0 }));
    }
  });

  test("may come byte by byte and with carriage returns", async () => {
    const slowly = async (peer: Peer, text: string) => {
      for (const byte of text) {
        peer.send(byte);
        await sleep(1);
      }
    };
    await using server = await FakeServer.begin(async (peer) => {
      await peer.expect("client");
      await slowly(peer, "ok\r\n");
      await peer.expect("l");
      await slowly(peer, `sig a b\r\nok ${TOKEN} 30\r\n`);
      await peer.answer("r", "ok");
    });
    await using locks = clientOf(server);
    await locks.using("k", { wait: 0 }, () => {});
  });
});

describe("who is in the way", () => {
  /** Says this of it, to a try that it refuses. */
  const tells =
    (...answers: string[]): Script =>
    async (peer) => {
      await peer.answer("client", "ok");
      const [, , argument] = await peer.request();
      assert.match(argument, /^0 /);
      peer.send("timeout\n");
      await peer.answer("api", ...answers);
      if (answers.length > 0) await peer.waitClosed();
    };

  async function told(answers: string[], limit?: number): Promise<lockd.NotAcquired> {
    await using server = await FakeServer.begin(tells(...answers));
    await using locks = clientOf(server);
    const busy = await failure(lockd.NotAcquired, locks.acquire("a key é", { wait: 0, limit }));
    assert.deepEqual(server.seen.at(-1), ["api", "GET /v1/locks", '{"key":"a key é"}']);
    assert.equal(server.commands.length, 3);
    return busy;
  }

  const conflictOf = ({ holder, client, waiters }: lockd.NotAcquired) => [holder, client, waiters];
  const NOBODY = [undefined, undefined, undefined];

  test("is told of the kind that is wanted", async () => {
    const line =
      'ok 200 {"locks":[{"kind":"semaphore","waiters":9,"holds":[{"holder":"x"}]},' +
      '{"kind":"lock","waiters":2,"holds":[{"holder":"tcp:17","client":"ann@build-7:4711"}]}]}';
    const lock = await told([line]);
    assert.deepEqual(conflictOf(lock), ["tcp:17", "ann@build-7:4711", 2]);
    assert.match(lock.message, /held by "ann@build-7:4711"$/);
    const semaphore = await told([line], 3);
    assert.deepEqual(conflictOf(semaphore), ["x", undefined, 9]);
    assert.match(semaphore.message, /held by "x"$/);
  });

  test("is not made up", async () => {
    for (const line of [
      "error",
      "error_denied",
      "error_not_leader -",
      "timeout",
      "hello",
      "ok 200",
      "ok 200 {",
      `ok 200 ${"[".repeat(100_000)}`,
      'ok 200 {"locks":7}',
      'ok 200 {"locks":[7,{"kind":"lock","holds":[]},{"kind":"lock","holds":{"a":1}}]}',
      'ok 200 {"locks":[{"kind":"lock","holds":[{"holder":7},{"holder":""}]}]}',
      'ok 403 {"error":"denied"}',
      "x".repeat(2_000_000),
    ]) {
      assert.deepEqual(conflictOf(await told([line])), NOBODY, line.slice(0, 80));
    }
    const line =
      'ok 200 {"locks":[{"kind":"lock","waiters":-1,"holds":[{"holder":"a","client":7}]}]}';
    assert.deepEqual(conflictOf(await told([line])), ["a", undefined, undefined]);
  });

  test("delays the answer by a second at most when it is not told", async () => {
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("l", "timeout");
      await peer.expect("api");
      await peer.waitClosed();
    });
    await using locks = clientOf(server, { replyTimeout: 60_000 });
    const began = now();
    assert.deepEqual(
      conflictOf(await failure(lockd.NotAcquired, locks.acquire("k", { wait: 0 }))),
      NOBODY,
    );
    assert.ok(now() - began < PATIENCE);
    assert.deepEqual(conflictOf(await told([])), NOBODY, "of a server that ends the connection");
  });

  test("is asked for once the wait is over", async () => {
    await using server = await FakeServer.begin(async (peer) => {
      for (;;) {
        const [command] = await peer.request();
        peer.send(command === "client" ? "ok\n" : "timeout\n");
      }
    });
    await using locks = clientOf(server);
    await failure(lockd.NotAcquired, locks.acquire("k", { wait: 3000 }));
    assert.ok(server.argumentsOf("l").length > 1);
    assert.ok(!server.commands.slice(0, -1).includes("api"));
  });

  test("is not waited for by a caller who gives up", async () => {
    const giveUp = new AbortController();
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("l", "timeout");
      await peer.expect("api");
      giveUp.abort();
      await peer.waitClosed();
    });
    await using locks = clientOf(server);
    await failure(lockd.Cancelled, locks.acquire("k", { wait: 0, signal: giveUp.signal }));
  });

  test("is not asked of a server that would not know", async () => {
    await using server = await FakeServer.begin(refusesClient, async (peer) => {
      await peer.answer("l", "timeout");
      await peer.waitClosed();
    });
    await using locks = clientOf(server);
    const busy = await failure(lockd.NotAcquired, locks.acquire("k", { wait: 0 }));
    assert.deepEqual(conflictOf(busy), NOBODY);
    assert.deepEqual(server.commands, ["client", "l"]);
  });
});

describe("waits", () => {
  const endsWith =
    (...lines: string[]): Script =>
    async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("l", ...lines);
    };

  test("go on through a server that ends them, and say so", async () => {
    // By a plain `error`, by `error_draining`, by closing.
    const scripts = [endsWith("error"), endsWith("error_draining"), endsWith(), grants()];
    await using server = await FakeServer.begin(...scripts);
    await using locks = clientOf(server);
    const held = await locks.acquire("k", { wait: 20_000 });
    assert.ok(held.queuedAgain);
    const secrets = server.argumentsOf("l").map((argument) => argument.split(" ").at(-1));
    assert.equal(secrets.length, 4);
    assert.equal(new Set(secrets).size, 1, "it is one acquisition");
  });

  test("that the server cuts are asked for again", async () => {
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("l", "timeout");
      await peer.answer("l", `ok ${TOKEN} 30`);
      await peer.answer("r", "ok");
    });
    await using locks = clientOf(server);
    await locks.using("k", { wait: 20_000 }, (held) => assert.ok(held.queuedAgain));
  });

  test("ask for what is left", async () => {
    const later: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.expect("l");
      await sleep(2100);
    };
    await using server = await FakeServer.begin(later, grants());
    await using locks = clientOf(server);
    await locks.using("k", { wait: 9000 }, () => {});
    const named = server.argumentsOf("l").map((argument) => Number(argument.split(" ")[0]));
    assert.equal(named[0], 9);
    assert.ok((named[1] ?? 9) <= 7);
  });

  test("end at their own deadline", async () => {
    await using server = await FakeServer.begin(endsWith());
    await using locks = clientOf(server);
    const began = now();
    await failure(lockd.Disconnected, locks.acquire("k", { wait: 1200 }));
    assert.ok(now() - began < 1200 + PATIENCE);
  });

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

  test("for a server that does not let us in end at once", async () => {
    for (const line of ["error_auth", "error"]) {
      await using server = await FakeServer.begin(async (peer) => {
        await peer.answer("auth", line);
      });
      await using locks = clientOf(server, { token: "wrong" });
      await failure(lockd.Unauthorized, locks.acquire("k"));
    }
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

  test("for a place that is lost ask for it again", async () => {
    const forgets: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("e", "queued");
    };
    await using server = await FakeServer.begin(forgets, grants());
    await using locks = clientOf(server);
    const place = await locks.enqueue("k");
    const held = await place.wait({ wait: 10_000 });
    assert.ok(held.queuedAgain);
    await held.release();
    assert.deepEqual(server.commands, ["client", "e", "client", "l", "r"]);
  });

  test("for a place whose turn passed say so", async () => {
    await using server = await FakeServer.begin(async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("e", "queued");
      await peer.answer("w", "error_lease_expired");
      await peer.waitClosed();
    });
    await using locks = clientOf(server);
    const place = await locks.enqueue("k");
    await failure(lockd.LeaseExpired, place.wait({ wait: 10_000 }));
  });
});

describe("releases", () => {
  test("are repeated on a new connection", async () => {
    const breaks = grantsOnce(30, async (peer) => {
      await peer.expect("r");
    });
    const gone: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("r", "error");
    };
    // Whether the first one did it nobody can tell: it was held until then.
    await using server = await FakeServer.begin(breaks, gone);
    await using locks = clientOf(server);
    await locks.using("k", {}, () => {});
    assert.equal(server.argumentsOf("r").length, 2);
  });

  test("of what was lost say so", async () => {
    const refuses = grantsOnce(30, async (peer) => {
      await peer.answer("r", "error");
      await peer.waitClosed();
    });
    await using server = await FakeServer.begin(refuses);
    await using locks = clientOf(server);
    const held = await locks.acquire("k");
    assert.equal((await failure(lockd.LockLost, held.release())).reason, "refused");
  });

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
  /** A server that says who leads when it is asked `barrier`. */
  const follower = (named: string) =>
    FakeServer.begin(async (peer) => {
      for (;;) {
        const [command] = await peer.request();
        peer.send(command === "client" ? "ok\n" : `error_not_leader ${named}\n`);
      }
    });
  const leads =
    (lease: number, then: Script = async () => {}): Script =>
    async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("barrier", "ok");
      await peer.answer("l", `ok ${TOKEN} ${lease}`);
      await then(peer);
    };
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

  test("have nobody who was not given", async () => {
    await using stranger = await FakeServer.begin(grants());
    await using one = await follower(stranger.address);
    await using two = await follower("-");
    const cluster = [one.address, two.address];
    await using locks = new lockd.Client({ cluster, connectTimeout: 500 });
    const none = await failure(lockd.NotLeader, locks.acquire("k", { wait: 0 }));
    assert.equal(stranger.connections, 0);
    assert.match(none.message, /was not given/);
  });

  test("may have members that are down", async () => {
    await using leader = await FakeServer.begin(grants());
    await using locks = clusterOf({ address: `127.0.0.1:${await freePort()}` }, leader);
    await locks.using("k", { wait: 0 }, () => {});
  });

  test("elect, which is waited for", async () => {
    const elected: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("barrier", "error_not_leader -");
    };
    await using one = await FakeServer.begin(elected, elected, grants());
    await using two = await follower("-");
    await using locks = clusterOf(one, two);
    await locks.using("k", { wait: 0 }, () => {});
  });

  test("hold on at the next leader what is held", async () => {
    let isDown = false;
    const first = leads(30, () => eventually(() => isDown, "the end"));
    await using one = await FakeServer.begin(first, closes);
    await using two = await FakeServer.begin(grants());
    await using locks = clusterOf(one, two);
    {
      await using held = await locks.acquire("k", { lease: 30_000 });
      isDown = true;
      await eventually(() => two.commands.includes("n"), "a renewal");
      await sleep(50);
      held.check();
      assert.equal(locks.serverOf("k"), two.address);
    }
    assert.equal(two.commands.at(-1), "r");
  });

  test("keep a leader that hangs while others are asked", async () => {
    let isLeft = false;
    const hangs = leads(4, async (peer) => {
      await peer.waitClosed();
      isLeft = true;
    });
    await using one = await FakeServer.begin(hangs, (peer) => peer.waitClosed());
    await using two = await FakeServer.begin(grants(4));
    await using locks = clusterOf(one, two);
    {
      await using held = await locks.acquire("k", { lease: 4000 });
      await eventually(() => two.argumentsOf("n").length >= 2, "two renewals");
      held.check();
      assert.ok(!isLeft, "to leave would be to release");
    }
    await eventually(() => isLeft, "an end");
  });

  test("have followers that cannot say that it is lost", async () => {
    const stepsDown = leads(6, async (peer) => {
      await peer.answer("n", "error_not_leader -");
      await peer.waitClosed();
    });
    await using one = await FakeServer.begin(stepsDown);
    await using two = await FakeServer.begin(grants(6));
    await using locks = clusterOf(one, two);
    await using held = await locks.acquire("k", { lease: 6000 });
    await eventually(() => two.commands.includes("n"), "a renewal");
    await sleep(50);
    held.check();
  });

  test("let a wait go on at the next leader", async () => {
    const stepsDown: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("barrier", "ok");
      await peer.answer("l", "error_not_leader -");
      await peer.waitClosed();
    };
    await using one = await FakeServer.begin(stepsDown, closes);
    await using two = await FakeServer.begin(grants());
    await using locks = clusterOf(one, two);
    await locks.using("k", { wait: 9000 }, () => assert.equal(locks.serverOf("k"), two.address));
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

test("statistics may be long", async () => {
  await using server = await FakeServer.begin(async (peer) => {
    await peer.answer("client", "ok");
    await peer.answer("stats", `ok {"locks":[{"key":"${"x".repeat(3_000_000)}"}]}`);
  });
  await using locks = clientOf(server);
  assert.equal((await locks.stats()).locks[0]?.key.length, 3_000_000);
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
