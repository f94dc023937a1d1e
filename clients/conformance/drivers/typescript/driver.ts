/**
 * Has the TypeScript client do the steps of scenarios.
 *
 * Each line of the input is a job, and is answered by a line of reports; jobs run side by side. The
 * README of the suite says what is in them.
 */

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import {
  type AcquireOptions,
  Client,
  type ClientOptions,
  type HeldLock,
  LockdError,
  LockLost,
  LockSuspect,
  NotAcquired,
  type Place,
  type Subscription,
} from "../../../typescript/src/index.js";

interface Step {
  do: string;
  key: string;
  keys: string[];
  wait_ms?: number;
  lease_s?: number;
  shared?: boolean;
  limit?: number;
  permits?: number;
  max_hold_ms?: number;
  hold?: string;
  place?: string;
  cancel_after_ms?: number;
  channel: string;
  payload: string;
  pattern: string;
  group?: string;
  ms: number;
}

interface Job {
  id: number;
  addresses: string[];
  is_cluster: boolean;
  token?: string;
  token_file?: string;
  connect_timeout_ms?: number;
  reply_timeout_ms?: number;
  release_timeout_ms?: number;
  steps: Step[];
}

type Report = { outcome: string; [member: string]: unknown };

const KINDS = new Map([
  ["TooManyKeys", "max_locks"],
  ["TooManyWaiters", "max_waiters"],
  ["TooManyHolds", "max_holds"],
  ["LimitMismatch", "limit_mismatch"],
  ["ModeMismatch", "mode_mismatch"],
  ["PermitsMismatch", "permits_mismatch"],
  ["StorageFull", "storage"],
  ["AlreadyEnqueued", "already_enqueued"],
  ["NotEnqueued", "not_enqueued"],
  ["LeaseExpired", "lease_expired"],
  ["InvalidRequest", "invalid"],
  ["NoReply", "no_reply"],
  ["NotLeader", "not_leader"],
]);

/** An earlier step was to make it, and has not. */
class Nothing extends Error {}

function ofFailure(failure: unknown): Report {
  if (failure instanceof NotAcquired) {
    return {
      outcome: "not_acquired",
      queued_again: failure.queuedAgain,
      holder: failure.holder ?? "",
      holder_name: failure.client ?? "",
      waiters: failure.waiters ?? 0,
    };
  }
  if (failure instanceof LockLost) return { outcome: "lost", cause: failure.reason };
  if (failure instanceof LockSuspect) return { outcome: "suspect" };
  if (failure instanceof Nothing) return { outcome: "nothing" };
  if (!(failure instanceof LockdError)) throw failure;
  const { name } = failure.constructor;
  return { outcome: KINDS.get(name) ?? name.toLowerCase() };
}

function ofHeld(held: HeldLock): Report {
  return {
    outcome: "acquired",
    fence: String(held.fence),
    lease_s: held.lease / 1000,
    queued_again: held.queuedAgain,
  };
}

/** The steps of one job, and what they have made. */
class Steps {
  readonly #client: Client;
  readonly #holds = new Map<string, HeldLock>();
  readonly #places = new Map<string, Place>();
  #listening: Subscription | undefined;

  constructor(job: Job) {
    const options: ClientOptions = {
      [job.is_cluster ? "cluster" : "servers"]: job.addresses,
      token: job.token,
      tokenFile: job.token_file,
      connectTimeout: job.connect_timeout_ms,
      replyTimeout: job.reply_timeout_ms,
      releaseTimeout: job.release_timeout_ms,
    };
    this.#client = new Client(options);
  }

  async run(steps: Step[]): Promise<Report[]> {
    const reports: Report[] = [];
    for (const step of steps) {
      const began = performance.now();
      const report = await this.#do(step).catch(ofFailure);
      reports.push({ ...report, took_ms: Math.floor(performance.now() - began) });
    }
    await this.#client.close();
    return reports;
  }

  async #do(step: Step): Promise<Report> {
    switch (step.do) {
      case "acquire":
        return this.#keep(step, await this.#client.acquire(step.key, acquireOptions(step)));
      case "acquire_all":
        return this.#keep(step, await this.#client.acquireAll(step.keys, acquireOptions(step)));
      case "enqueue": {
        const place = await this.#client.enqueue(step.key, acquireOptions(step));
        this.#places.set(step.place ?? "", place);
        return { outcome: place.isGranted ? "granted" : "queued" };
      }
      case "wait":
        return this.#keep(step, await this.#place(step).wait(acquireOptions(step)));
      case "give_up":
        this.#place(step).giveUp();
        return { outcome: "done" };
      case "check":
        this.#hold(step).check();
        return { outcome: "held" };
      case "await_loss":
        return this.#awaitLoss(step);
      case "release":
        await this.#hold(step).release();
        return { outcome: "released" };
      case "sleep":
        await sleep(step.ms);
        return { outcome: "done" };
      default:
        return this.#tell(step);
    }
  }

  /** Signals and statistics. */
  async #tell(step: Step): Promise<Report> {
    switch (step.do) {
      case "publish":
        return { outcome: "count", count: await this.#client.publish(step.channel, step.payload) };
      case "listen":
        this.#listening = await this.#client.listen(step.pattern, { group: step.group });
        return { outcome: "done" };
      case "next": {
        if (this.#listening === undefined) throw new Nothing();
        const signal = await this.#listening.receive({ wait: step.wait_ms });
        if (signal === undefined) return { outcome: "none" };
        return { outcome: "signal", channel: signal.channel, payload: signal.text };
      }
      case "stats":
        return { outcome: "stats", connections: (await this.#client.stats()).connections };
      default:
        throw new Error(`nobody knows ${step.do}`);
    }
  }

  async #awaitLoss(step: Step): Promise<Report> {
    const held = this.#hold(step);
    const over = new AbortController();
    const lost = new Promise((resolve) => {
      held.signal.addEventListener("abort", resolve, { once: true });
      if (held.signal.aborted) resolve(undefined);
    });
    const late = sleep(step.wait_ms, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([lost, late]);
    over.abort();
    held.check();
    return { outcome: "held" };
  }

  #keep(step: Step, held: HeldLock): Report {
    this.#holds.set(step.hold ?? "", held);
    return ofHeld(held);
  }

  #hold(step: Step): HeldLock {
    const held = this.#holds.get(step.hold ?? "");
    if (held === undefined) throw new Nothing();
    return held;
  }

  #place(step: Step): Place {
    const place = this.#places.get(step.place ?? "");
    if (place === undefined) throw new Nothing();
    return place;
  }
}

function acquireOptions(step: Step): AcquireOptions {
  const { shared, limit, permits } = step;
  return {
    shared,
    limit,
    permits,
    wait: step.wait_ms,
    lease: step.lease_s === undefined ? undefined : 1000 * step.lease_s,
    maxHold: step.max_hold_ms,
    signal:
      step.cancel_after_ms === undefined ? undefined : AbortSignal.timeout(step.cancel_after_ms),
  };
}

function say(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

say({ lacks: [] });
for await (const line of createInterface({ input: process.stdin })) {
  const job: Job = JSON.parse(line);
  void new Steps(job).run(job.steps).then((reports) => say({ id: job.id, reports }));
}
