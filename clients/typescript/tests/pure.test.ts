/** What needs no server: lines, addresses, shards, clocks, certainty, the search for a leader. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Clock, MARGIN_MS, NEVER, now } from "../src/clock.js";
import { Address, Cluster, LeaderSearch } from "../src/cluster.js";
import { asyncDispose } from "../src/disposal.js";
import * as errors from "../src/errors.js";
import { Certainty } from "../src/hold.js";
import { PING_INTERVAL_MS } from "../src/listening.js";
import { Options } from "../src/options.js";
import { check, fenceOf, grantOf, lossOf, remainingOf, signalOf, statsOf } from "../src/replies.js";
import { authLines, clientLines, listenLines, publishLines, Wanted } from "../src/requests.js";
import { shardOf } from "../src/shard.js";
import { Awake, Latch, Scope, waitUntil } from "../src/waiting.js";

const SECRET = "0123456789abcdef";

describe("requests", () => {
  test("are three lines", () => {
    const lock = new Wanted("a key", { lease: 30_000 });
    assert.equal(lock.acquire(10_000), "l\na key\n10 30\n");
    assert.equal(lock.acquire(0, SECRET), `l\na key\n0 30 as=${SECRET}\n`);
    assert.equal(lock.enqueue(), "e\na key\n30\n");
    assert.equal(lock.awaitTurn(5000), "w\na key\n5\n");
    assert.equal(lock.renew("t", 30_000), "n\na key\nt 30\n");
    assert.equal(lock.release("t"), "r\na key\nt\n");
    assert.equal(new Wanted("k").enqueue(), "e\nk\n\n");
    const slot = new Wanted("pool", { limit: 3 });
    assert.equal(slot.acquire(1000), "sl\npool\n1 3\n");
    assert.equal(slot.enqueue(SECRET), `se\npool\n3 as=${SECRET}\n`);
    assert.equal(slot.release("t"), "sr\npool\nt\n");
  });

  test("say what they share", () => {
    const reader = new Wanted("k", { lease: 30_000, shared: true });
    assert.equal(reader.acquire(1000, SECRET), `l\nk\n1 30 shared as=${SECRET}\n`);
    assert.equal(reader.enqueue(), "e\nk\n30 shared\n");
    assert.equal(new Wanted("k", { shared: true }).acquire(1000), "l\nk\n1 shared\n");
    assert.equal(reader.renew("t", 30_000), "n\nk\nt 30\n");
    const job = new Wanted("pool", { limit: 5, permits: 4 });
    assert.equal(job.acquire(1000), "sl\npool\n1 5 33 4\n");
    assert.equal(job.enqueue(SECRET), `se\npool\n5 33 4 as=${SECRET}\n`);
    assert.equal(job.release("t"), "sr\npool\nt\n");
    const one = new Wanted("pool", { limit: 5, permits: 1 });
    assert.equal(one.acquire(1000), "sl\npool\n1 5\n");
    assert.deepEqual(
      [reader, job, one].map((wanted) => wanted.isPlain),
      [false, false, true],
    );
  });

  test("name never less than the wait", () => {
    const lock = new Wanted("k");
    const named = [0, 100, 1000, 1500].map((wait) => lock.waitToName(wait));
    assert.deepEqual(named, [0, 1000, 1000, 2000]);
    assert.equal(lock.waitToName(Number.POSITIVE_INFINITY), 9_223_372_036_000);
  });

  test("that no server takes are not sent", () => {
    for (const make of [
      () => new Wanted(""),
      () => new Wanted("a\nb"),
      () => new Wanted("é".repeat(129)),
      () => new Wanted("\ud800"),
      () => new Wanted("k", { lease: 0 }),
      () => new Wanted("k", { lease: 1500 }),
      () => new Wanted("k", { lease: Number.NaN }),
      () => new Wanted("k", { limit: 0 }),
      () => new Wanted("k", { limit: 4, permits: 0 }),
      () => new Wanted("k", { limit: 4, permits: 5 }),
      () => new Wanted("k", { limit: 4, permits: 1.5 }),
      () => new Wanted("k", { limit: 4, permits: Number.NaN }),
      () => new Wanted("k", { permits: 2 }),
      () => new Wanted("k", { limit: 4, shared: true }),
      () => authLines(" "),
      () => clientLines("", ""),
      () => listenLines("a.>.b"),
      () => listenLines("a*"),
      () => listenLines("a", " g"),
      () => publishLines("a.*", "x"),
      () => publishLines("a", " "),
      () => publishLines("a", Buffer.alloc(65_536, "x")),
    ]) {
      assert.throws(make, errors.InvalidRequest, String(make));
    }
    assert.ok(new Wanted("\u0085 😀", { lease: 1000 }));
  });

  test("of signals", () => {
    assert.equal(listenLines("a.*.>", "g h"), "listen\na.*.>\ng h\n");
    assert.deepEqual(publishLines("a.b", "ü x"), Buffer.from("signal\na.b\nü x\n"));
    const bytes = Buffer.from("signal\na\n\xff\n", "latin1");
    assert.deepEqual(publishLines("a", new Uint8Array([255])), bytes);
  });
});

describe("replies", () => {
  test("grants", () => {
    const token = "00000000000000ff0123456789abcdef";
    assert.deepEqual(grantOf(`ok ${token} 33`, 5), { token, lease: 33_000, sentAt: 5 });
    assert.equal(fenceOf(token), 255n);
    assert.equal(fenceOf("ffffffffffffffff"), 18_446_744_073_709_551_615n);
    assert.equal(grantOf("timeout", 0), undefined);
    assert.equal(grantOf("queued", 0), undefined);
  });

  test("no lease is longer than what was asked", () => {
    assert.equal(grantOf("acquired t 99", 0, 10_000)?.lease, 10_000);
    assert.equal(remainingOf("ok 99", 10_000), 10_000);
    assert.equal(remainingOf("ok 0", 10_000), 1000);
  });

  test("tokens of others have no fence", () => {
    assert.equal(fenceOf("short"), 0n);
    assert.equal(fenceOf("+_00000000000000ff"), 0n);
  });

  test("who leads", () => {
    for (const [reply, leader] of [
      ["error_not_leader a:1", "a:1"],
      ["error_not_leader -", undefined],
    ] as const) {
      assert.throws(
        () => check(reply),
        (error) => error instanceof errors.NotLeader && error.leader === leader,
      );
    }
  });

  test("that are garbled", () => {
    for (const reply of ["toString", "nonsense", ""]) {
      assert.throws(() => check(reply), errors.Garbled, reply);
    }
    for (const reply of ["ok", "ok t", "ok t x", "ok t -1", "ok t 0", "ok  30", "ok t ٣"]) {
      assert.throws(() => grantOf(reply, 0), errors.Garbled, reply);
    }
    for (const reply of ["ok {", "ok []", "ok null", "ok"]) {
      assert.throws(() => statsOf(reply), errors.Garbled, reply);
    }
  });

  test("pushes", () => {
    const signal = signalOf(Buffer.from("sig a.b some \xff text", "latin1"));
    assert.equal(signal?.channel, "a.b");
    assert.deepEqual([...(signal?.payload ?? [])].slice(5, 6), [255]);
    assert.equal(signal?.text, "some � text");
    assert.deepEqual(lossOf(Buffer.from("lost t revoked a key")), { token: "t", cause: "revoked" });
    assert.equal(lossOf(Buffer.from("ok")), undefined);
  });
});

describe("addresses", () => {
  test("have forms", () => {
    for (const [text, host, port] of [
      ["a", "a", 6388],
      ["a:1", "a", 1],
      ["::1", "::1", 6388],
      ["[::1]", "::1", 6388],
      ["[::1]:7", "::1", 7],
    ] as const) {
      assert.deepEqual(Address.parse(text), new Address(host, port));
    }
    assert.equal(String(new Address("::1", 7)), "[::1]:7");
  });

  test("have no other forms", () => {
    const texts = ["", ":1", "a:", "a:0", "a:65536", "a:x", "[::1", "[]:1", "[::1]x", "a b"];
    for (const text of [...texts, "a:-1"]) {
      assert.throws(() => Address.parse(text), errors.InvalidRequest, text);
    }
  });

  test("shards are those of all clients", () => {
    assert.equal(shardOf("my-key", 3), 2);
    assert.equal(shardOf("orders/42", 5), 1);
    assert.equal(shardOf("my-job", 4), 0);
    assert.equal(shardOf("clé-日本", 3), 2);
  });
});

/** A machine whose clocks go as told. */
class Machine {
  #steady = 0;
  #suspended = 0;
  /** How long it takes to read a clock. */
  reading = 0.001;

  constructor(readonly begin: number) {}

  get elapsed(): number {
    return this.#steady + this.#suspended;
  }

  run(ms: number): void {
    this.#steady += ms;
  }

  suspend(ms: number): void {
    this.#suspended += ms;
  }

  steady(): number {
    this.run(this.reading);
    return this.#steady;
  }

  uptime(): number {
    this.run(this.reading);
    return Math.floor((this.begin + this.elapsed) / 10) * 10;
  }
}

describe("the clock", () => {
  test("is exact while nothing is suspended", () => {
    const machine = new Machine(123_456);
    const clock = new Clock(machine);
    const began = clock.now();
    for (let step = 0; step < 1000; step += 1) {
      machine.run(0.37);
      const before = machine.elapsed;
      const read = clock.now() - began;
      assert.ok(read >= before - 0.1 && read <= machine.elapsed, `${read} at ${before}`);
    }
  });

  test("counts what was suspended, and never too little", () => {
    let random = 1;
    const next = () => {
      random = (random * 48_271) % 2_147_483_647;
      return random / 2_147_483_647;
    };
    for (let round = 0; round < 500; round += 1) {
      const machine = new Machine(next() * 1e9);
      const clock = new Clock(machine);
      for (let sleeps = 0; sleeps < 20; sleeps += 1) {
        // As a lease: from some moment to another, with a suspension between, at times tiny.
        const began = clock.now();
        const beganAt = machine.elapsed;
        machine.run(next() * 30);
        machine.suspend(next() < 0.5 ? next() * 40 : next() * 1e6);
        machine.run(next() * 30);
        const elapsedBefore = machine.elapsed;
        const counted = clock.now() - began;
        assert.ok(counted >= elapsedBefore - beganAt - MARGIN_MS, "certain for too long");
        assert.ok(counted <= machine.elapsed - beganAt + 2 * MARGIN_MS, "far too early");
      }
    }
  });

  test("sums up suspensions that are too short to be seen", () => {
    const machine = new Machine(5);
    const clock = new Clock(machine);
    const began = clock.now();
    for (let step = 0; step < 200; step += 1) {
      machine.suspend(3);
      machine.run(1);
      const behind = machine.elapsed - (clock.now() - began);
      assert.ok(behind < MARGIN_MS, `${behind} ms behind`);
    }
  });

  test("is not misled by a process that stood still between two clocks", () => {
    const machine = new Machine(77);
    const clock = new Clock(machine);
    const began = clock.now();
    machine.reading = 300;
    clock.now();
    machine.reading = 0.001;
    const before = machine.elapsed;
    const counted = clock.now() - began;
    assert.ok(counted >= before - 1 && counted < before + 1, `${counted} of ${before}`);
  });

  test("does without an uptime", () => {
    let time = 5;
    const clock = new Clock({ steady: () => time, uptime: () => undefined });
    assert.equal(clock.now(), 5);
    time = 9;
    assert.equal(clock.now(), 9);
  });

  test("of this machine never goes back, and goes as fast as the others", async () => {
    const began = [now(), performance.now()] as const;
    let last = began[0];
    while (performance.now() - began[1] < 200) {
      const time = now();
      assert.ok(time >= last);
      last = time;
      if (Math.random() < 0.01) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.ok(Math.abs(now() - began[0] - (performance.now() - began[1])) < 100);
  });
});

describe("waiting", () => {
  const awake = new Awake();
  before(() => awake.begin()); // no wait keeps the process alive by itself
  after(() => awake.end());

  test("is never over early", async () => {
    for (const ms of [0.3, 1, 7.7, 20]) {
      const deadline = now() + ms;
      await waitUntil(new Scope(), deadline);
      assert.ok(now() >= deadline);
    }
  });

  test("ends with a latch, and by being cancelled", async () => {
    const latch = new Latch();
    setTimeout(() => latch.set(), 5);
    await waitUntil(new Scope(), NEVER, latch);
    const scope = new Scope();
    setTimeout(() => scope.cancel(), 5);
    await assert.rejects(waitUntil(scope, NEVER), errors.Cancelled);
  });
});

describe("certainty", () => {
  test("ends by itself and for good", () => {
    const certainty = new Certainty(10);
    assert.ok(certainty.lasts(9.999));
    assert.ok(!certainty.lasts(10));
    assert.ok(!certainty.lasts(9));
    assert.ok(!certainty.extend(9, 20));
    assert.ok(!certainty.end(9));
  });

  test("is extended while it lasts", () => {
    const certainty = new Certainty(10);
    assert.ok(certainty.extend(9, 20));
    assert.ok(certainty.lasts(19));
    assert.ok(certainty.extend(19, 19.5));
    assert.ok(!certainty.lasts(19.5));
  });

  test("is not revived by a confirmation that comes late", () => {
    const certainty = new Certainty(10);
    assert.ok(!certainty.extend(10, 20));
    assert.ok(!certainty.lasts(10));
  });

  test("is ended", () => {
    const certainty = new Certainty(10);
    assert.ok(certainty.end(5));
    assert.equal(certainty.until, 5);
    assert.ok(!certainty.lasts(5));
  });
});

describe("the search for a leader", () => {
  const clusterOf = (...names: string[]) =>
    new Cluster(
      names.map((name) => Address.parse(name)),
      new Options({}),
    );
  const gone = new errors.Unreachable("gone");
  const forged = new errors.Untrusted("forged");

  test("goes to each once a round", () => {
    const search = new LeaderSearch(clusterOf("a", "b", "c"));
    const visited: number[] = [];
    for (let step = 0; step < 6; step += 1) {
      visited.push(search.here);
      search.moveOn(gone, 1);
    }
    assert.deepEqual(visited.slice(0, 3).sort(), [0, 1, 2]);
    assert.deepEqual(visited.slice(3).sort(), [0, 1, 2]);
  });

  test("follows a name that was given and no other", () => {
    const search = new LeaderSearch(clusterOf("a", "b", "c"));
    search.moveOn(new errors.NotLeader("", "c:6388"), 0);
    assert.equal(search.here, 2);
    search.moveOn(new errors.NotLeader("", "evil:6388"), 0);
    assert.equal(search.here, 1);
    assert.match(search.verdict().message, /"evil:6388" was named, and was not given/);
    assert.ok(search.verdict() instanceof errors.NotLeader);
  });

  test("is kept from the third by no two who name each other", () => {
    const search = new LeaderSearch(clusterOf("a", "b", "c"));
    search.moveOn(new errors.NotLeader("", "b"), 0);
    assert.equal(search.here, 1);
    search.moveOn(new errors.NotLeader("", "a"), 0);
    assert.equal(search.here, 2);
  });

  test("pauses, for longer and longer up to a bound", () => {
    const search = new LeaderSearch(clusterOf("a"));
    const pauses: number[] = [];
    for (let step = 0; step < 8; step += 1) {
      search.moveOn(gone, 100);
      pauses.push(search.notBefore - 100);
    }
    assert.deepEqual(pauses, [0, 50, 100, 200, 400, 800, 1000, 1000]);
  });

  test("is hopeless when waiting cures nobody", () => {
    const search = new LeaderSearch(clusterOf("a", "b"));
    search.moveOn(forged, 0);
    search.moveOn(gone, 0);
    assert.ok(!search.isHopeless);
    assert.ok(search.verdict() instanceof errors.Untrusted);
    search.moveOn(forged, 0);
    search.moveOn(forged, 0);
    assert.ok(search.isHopeless);
  });

  test("has bounds", () => {
    const many = Array.from({ length: 17 }, (_, n) => `a${n}`);
    for (const names of [[], ["a", "a"], many]) {
      assert.throws(() => clusterOf(...names), errors.InvalidRequest);
    }
  });
});

describe("errors", () => {
  test("have a loss behind them, or none", () => {
    const loss = new errors.LockLost("gone", { key: "k", reason: "revoked" });
    const suppressed = Object.assign(new Error("two"), { error: loss, suppressed: new Error() });
    const aborted = new Error("aborted", { cause: loss });
    for (const error of [loss, suppressed, aborted, new Error("", { cause: aborted })]) {
      assert.equal(errors.LockLost.behind(error), loss);
    }
    const round = new Error("round");
    round.cause = round;
    for (const error of [new Error(), undefined, "text", round]) {
      assert.equal(errors.LockLost.behind(error), undefined);
    }
  });

  test("of those who gave up look like those of others", () => {
    const cancelled = new errors.Cancelled("given up");
    assert.equal(cancelled.name, "AbortError");
    assert.equal(cancelled.code, "ABORT_ERR");
  });
});

test("the symbol of disposal is the runtime's", () => {
  assert.equal(asyncDispose, Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose"));
});

test("silence is asked about as often as all clients do", () => {
  assert.equal(PING_INTERVAL_MS, 15_000);
});
