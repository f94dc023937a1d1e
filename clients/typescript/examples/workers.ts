// Three workers, and two permits of a semaphore. The work ends early when its permit is lost.

import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "lockd";

const locks = new Client(process.argv[2] ?? "127.0.0.1");
let busy = 0;
let most = 0;

async function work(): Promise<void> {
  await locks.using("printers", { limit: 2, lease: 30_000 }, async (permit) => {
    busy += 1;
    most = Math.max(most, busy);
    await sleep(100, undefined, { signal: permit.signal });
    busy -= 1;
  });
}

await Promise.all([work(), work(), work()]);
console.log(`three worked, ${most} at a time`);
