/** Signals: patterns, groups, silence, and servers that go and come back. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Engine } from "../src/engine.js";
import * as lockd from "../src/index.js";
import {
  eventually,
  FakeServer,
  failure,
  now,
  PATIENCE,
  type Script,
  Server,
  shareServer,
  sleep,
} from "./support.js";

const { locks } = await shareServer();

describe("signals", () => {
  test("reach those who listen", async () => {
    {
      await using orders = await locks.listen("orders.>");
      await using answers = await locks.listen("*.42");
      assert.equal(await locks.publish("orders.42", "ready, ü"), 2);
      for (const subscription of [orders, answers]) {
        const signal = await subscription.receive({ wait: PATIENCE });
        assert.deepEqual([signal?.channel, signal?.text], ["orders.42", "ready, ü"]);
      }
      assert.equal(await locks.publish("others.1", new Uint8Array([255])), 0);
    }
    await eventually(async () => (await locks.publish("orders.42", "x")) === 0, "nobody");
  });

  test("come in order and by iteration", async () => {
    await using numbers = await locks.listen("n");
    for (let n = 0; n < 100; n += 1) await locks.publish("n", String(n));
    let expected = 0;
    for await (const signal of numbers) {
      assert.equal(signal.text, String(expected));
      expected += 1;
      if (expected === 100) break;
    }
  });

  test("are waited for, and never too short", async () => {
    await using quiet = await locks.listen("quiet");
    const began = now();
    assert.equal(await quiet.receive({ wait: 300 }), undefined);
    assert.ok(now() - began >= 300);
    await failure(lockd.Cancelled, quiet.receive({ signal: AbortSignal.timeout(20) }));
    const waiting = Promise.all([quiet.receive(), quiet.receive()]);
    for (const text of ["a", "b"]) await locks.publish("quiet", text);
    assert.deepEqual((await waiting).map((signal) => signal?.text).sort(), ["a", "b"]);
  });

  test("that are not asked for are dropped, the oldest first", async () => {
    await using flood = await locks.listen("flood");
    for (let n = 0; n < 1100; n += 1) await locks.publish("flood", String(n));
    await eventually(() => flood.dropped === 76, "drops");
    assert.equal((await flood.receive({ wait: 0 }))?.text, "76");
  });

  test("end with their subscription", async () => {
    const subscription = await locks.listen("x");
    const waiting = failure(lockd.Cancelled, subscription.receive());
    subscription.close();
    await waiting;
    await failure(lockd.Cancelled, subscription.receive({ wait: PATIENCE }));
  });
});

describe("a subscription", () => {
  test("goes on at a server that came back", async () => {
    await using server = await Server.begin();
    await using locks = new lockd.Client(server.address);
    await using subscription = await locks.listen("a");
    for (const gaps of [1, 2]) {
      await server.kill();
      await server.start();
      await eventually(() => subscription.gaps === gaps, "listening again");
      assert.equal(await locks.publish("a", "x"), 1);
      assert.ok(await subscription.receive({ wait: PATIENCE }));
    }
  });

  test("asks about silence", async () => {
    const quiet: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("listen", "ok");
      await peer.answer("ping", "ok");
      await peer.answer("ping", "sig a alive", "ok");
      await peer.expect("ping"); // and now it is dead
      await peer.waitClosed();
    };
    const again: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("listen", "ok", "sig a back");
      await peer.waitClosed();
    };
    await using server = await FakeServer.begin(quiet, again);
    const engine = new Engine({ servers: server.address, replyTimeout: 500 }, 300);
    const listening = await engine.listen("a", "g", undefined);
    for (const text of ["alive", "back"]) {
      assert.equal((await engine.receive(listening, PATIENCE, undefined))?.text, text);
    }
    await engine.close();
    const first = ["client", "listen", "ping", "ping", "ping"];
    assert.deepEqual(server.commands, [...first, "client", "listen"]);
    assert.deepEqual(server.seen.at(-1), ["listen", "a", "g"]);
  });

  test("ends at a server that no longer lets us in", async () => {
    const once: Script = async (peer) => {
      await peer.answer("client", "ok");
      await peer.answer("listen", "ok");
      await sleep(50);
    };
    const never: Script = async (peer) => {
      await peer.answer("client", "error_auth");
    };
    await using server = await FakeServer.begin(once, never);
    await using locks = new lockd.Client(server.address);
    await using subscription = await locks.listen("a");
    await failure(lockd.Unauthorized, subscription.receive({ wait: PATIENCE }));
  });

  test("is at all of several servers", async () => {
    await using one = await Server.begin();
    await using two = await Server.begin();
    await using locks = new lockd.Client([one.address, two.address]);
    await using all = await locks.listen(">");
    const channels = ["a", "b", "c", "d"];
    for (const channel of channels) assert.equal(await locks.publish(channel, "x"), 1);
    const heard: (string | undefined)[] = [];
    for (const _ of channels) heard.push((await all.receive({ wait: PATIENCE }))?.channel);
    assert.deepEqual(heard.sort(), channels);
  });
});
