// Holds locks and renews them: the client for TypeScript, to be measured by bench/clients/renewals.
//
//   hold_locks.mjs HOST:PORT LOCKS LEASE_S
//
// Says `held` when it has all, holds them until a line comes in, and says how many it has then.

import { once } from "node:events";
import { createInterface } from "node:readline";

import { Client } from "../../clients/typescript/dist/index.js";

const [address, locks, lease] = process.argv.slice(2);
const client = new Client(address);
const held = [];
for (let i = 0; i < Number(locks); i += 1) {
  const key = `${process.pid}/${i}`;
  held.push(await client.acquire(key, { wait: 60_000, lease: 1000 * Number(lease) }));
}
console.log("held");
await once(createInterface({ input: process.stdin }), "line");
console.log(held.filter((one) => one.isHeld).length);
await client.close();
process.exit();
