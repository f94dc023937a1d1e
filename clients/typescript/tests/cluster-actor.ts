/**
 * A program that holds a lock of a cluster, and says how it goes.
 *
 *     cluster-actor.js KEY LEASE_S HOST:PORT...
 *
 * `held FENCE QUEUED_AGAIN` once it has it, after a wait without bound; `lost REASON` when it is
 * lost. A line comes in: it releases, and says `released`.
 */

import { once } from "node:events";
import { createInterface } from "node:readline";

import { Client } from "../src/index.js";

const [key = "", lease = "", ...cluster] = process.argv.slice(2);
const held = await new Client({ cluster }).acquire(key, {
  lease: 1000 * Number(lease),
  onLost: (loss) => console.log(`lost ${loss.reason}`),
});
console.log(`held ${held.fence} ${held.queuedAgain}`);
await once(createInterface({ input: process.stdin }), "line");
await held.release();
console.log("released");
process.exit();
