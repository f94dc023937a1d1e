/** Drives the client for TypeScript, as it is built. README.md says what is asked of a driver. */

import { setTimeout as sleep } from "node:timers/promises";
import { Client, LockdError, NotAcquired } from "../../../clients/typescript/dist/index.js";

const WORKERS = 32;
const [port, proc, seed] = process.argv.slice(2).map(Number);
const out = [];

/** Node shows CLOCK_MONOTONIC, which is behind by the time for which the machine was asleep. */
const asleep = BigInt(process.env.HISTORIES_ASLEEP_NS ?? 0);
const now = () => process.hrtime.bigint() + asleep;

/** A small generator, so that a seed is worth something. */
function chances(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Numbers of 64 bits are written as such. */
function note(request, more) {
  const members = Object.entries({ ...request, ...more }).map(
    ([name, value]) => `"${name}":${typeof value === "string" ? `"${value}"` : value}`,
  );
  out.push(`{${members.join(",")}}\n`);
  if (out.length >= 50) flush();
}

function flush() {
  process.stdout.write(out.splice(0).join(""));
}

function someRequest(proc, chance) {
  const isLock = chance() < 0.8;
  const number = Math.floor(chance() * (isLock ? 160 : 20));
  return {
    proc,
    key: `${isLock ? "lock" : "sem"}-${number}`,
    kind: isLock ? "lock" : "sem",
    limit: isLock ? 1 : 2,
    ttl: 1 + Math.floor(chance() * 3),
    timeout: chance() < 0.5 ? 0 : 2,
    via: "lib",
    srv: "w",
    life: 1,
  };
}

async function holdOne(client, request, chance) {
  const call = now();
  let held;
  try {
    held = await client.acquire(request.key, {
      wait: 1000 * request.timeout,
      lease: 1000 * request.ttl,
      limit: request.kind === "lock" ? undefined : request.limit,
    });
  } catch (error) {
    if (!(error instanceof LockdError)) throw error;
    const isOver = error instanceof NotAcquired;
    const end = isOver ? { ret: now(), res: "error:refused" } : { gave_up: now(), res: "info" };
    return note(request, { f: "acquire", call, ...end });
  }
  const granted = now();
  const told = { ...request, fence: held.fence };
  note(told, { f: "acquire", call, ret: granted, res: "ok" });
  const believed = await keep(held, told, granted, chance);
  await release(held, told, believed);
}

async function keep(held, told, granted, chance) {
  const until = granted + BigInt(Math.round((0.5 + 3.5 * chance()) * 1e9));
  const isLong = chance() < 0.02;
  let believed = 0n; // not even once, if the lease was over when the answer came
  for (;;) {
    const at = now();
    if (!held.isHeld) break;
    believed = at;
    if (!isLong || at >= until) break;
    await sleep(20);
  }
  if (believed) note(told, { f: "believe", call: granted, ret: believed, res: "ok" });
  return believed || granted;
}

// A client that loses a hold releases it by itself: at any time since it last believed in it.
async function release(held, told, believed) {
  const call = now();
  try {
    await held.release();
    note(told, { f: "release", call, ret: now(), res: "ok" });
  } catch (error) {
    if (!(error instanceof LockdError)) throw error;
    note(told, { f: "release", call: believed, gave_up: now(), res: "info" });
  }
}

let stopping = false;

async function work(client, proc, chance) {
  while (!stopping) {
    await holdOne(client, someRequest(proc, chance), chance);
    await sleep(5 + 20 * chance());
  }
}

process.stdin.on("end", () => {
  stopping = true;
});
process.stdin.resume();
const client = new Client(`127.0.0.1:${port}`);
const workers = Array.from({ length: WORKERS }, (_, i) => work(client, proc + i, chances(seed + i)));
await Promise.all(workers);
await client.close();
flush();
