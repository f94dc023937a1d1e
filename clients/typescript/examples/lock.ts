// Does a job that only one process may do at a time.

import { Client, LockLost, NotAcquired } from "lockd";

async function doJob(locks: Client): Promise<void> {
  // Wait in the queue for up to ten seconds. From then on the lock renews itself.
  await using held = await locks.acquire("my-job", { wait: 10_000, lease: 30_000 });
  for (const step of [1, 2, 3]) {
    // Before everything that cannot be undone: is it still ours?
    held.check();
    // Whatever is written to gets the fence, and refuses one smaller than it has seen.
    console.log(`step ${step} under fence ${held.fence}`);
  }
}

try {
  await doJob(new Client(process.argv[2] ?? "127.0.0.1"));
  console.log("released");
} catch (error) {
  const loss = LockLost.behind(error);
  if (loss !== undefined) console.log(`lost: ${loss.message}`);
  else if (error instanceof NotAcquired) console.log(`not now: ${error.message}`);
  else throw error;
  process.exitCode = 1;
}
