// All there is to ask of a client, once.

import { Client, NotAcquired } from "lockd";

await using locks = new Client(process.argv[2] ?? "127.0.0.1");

async function hold(): Promise<void> {
  const held = await locks.acquire("my-job", {
    wait: 5_000,
    lease: 30_000,
    maxHold: 600_000,
    onLost: console.error,
    signal: AbortSignal.timeout(60_000),
  });
  console.log(held.key, held.fence, held.lease, held.remaining, held.isHeld, held.queuedAgain);
  await held.release();

  try {
    await (await locks.acquire("my-job", { wait: 0 })).release();
  } catch (error) {
    if (!(error instanceof NotAcquired)) throw error;
    console.log(error.key, error.holder, error.client, error.waiters); // as far as the server told
  }
}

async function share(): Promise<void> {
  const first = await locks.acquire("printers", { limit: 2, wait: 10_000 });
  await using second = await locks.acquire("printers", { limit: 2 });
  const place = await locks.enqueue("printers", { limit: 2 }); // joins the queue now, waits later
  console.log(second.isHeld, place.isGranted ? "granted" : "queued");
  await first.release();
  await (await place.wait({ wait: 10_000 })).release();
}

async function readAndWrite(): Promise<void> {
  {
    await using one = await locks.acquire("report", { shared: true, wait: 10_000 });
    await using two = await locks.acquire("report", { shared: true, wait: 10_000 });
    console.log("two read", one.fence < two.fence);
  }
  await locks.using("report", { wait: 10_000 }, () => console.log("one writes"));

  const job = { limit: 8, permits: 4, wait: 10_000, lease: 30_000 };
  await locks.using("gpus", job, () => console.log("a job of four"));
}

async function holdSeveral(): Promise<void> {
  await using seats = await locks.acquireAll(["seat-12", "seat-13"], { wait: 10_000 });
  console.log(...seats.keys, seats.fence > 0n ? "under one fence" : "");

  const prices = { key: "prices", shared: true };
  const cores = { key: "cores", limit: 8, permits: 4 };
  await using job = await locks.acquireAll(["report", prices, cores], { wait: 10_000 });
  console.log("a report alone, prices shared, four cores:", job.isHeld);
}

async function signal(): Promise<void> {
  await using orders = await locks.listen("orders.>"); // { group } shares them among its members
  console.log("reached", await locks.publish("orders.42", "ready"));
  const received = await orders.receive({ wait: 10_000 }); // or: for await (const one of orders)
  console.log(received?.channel, received?.text);
  console.log((await locks.stats()).connections, "connections");
}

await hold();
await share();
await readAndWrite();
await holdSeveral();
await signal();
