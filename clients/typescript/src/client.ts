import type { ClientOptions } from "./client-options.js";
import { asyncDispose } from "./disposal.js";
import { Engine } from "./engine.js";
import type { LockLost } from "./errors.js";
import { HeldLock } from "./held-lock.js";
import { Place } from "./place.js";
import { Wanted } from "./requests.js";
import { WantedSet } from "./sets.js";
import { Subscription } from "./subscription.js";
import type { SetItem, Stats } from "./values.js";

/** What there is to say of whatever is held. All times are in milliseconds. */
export interface HoldOptions {
  /** A whole number of seconds, renewed at a third of it; without it, the server's default. */
  lease?: number | undefined;
  /**
   * So long after the grant it is no longer renewed, and ends with its lease: a program that is stuck
   * does not hold it for ever.
   */
  maxHold?: number | undefined;
  /** Called when it is lost. */
  onLost?: ((loss: LockLost) => void) | undefined;
  /** Gives up the call, and the place in the queue, at once. Has no say once the call is done. */
  signal?: AbortSignal | undefined;
}

/** What there is to say of a lock that is joined the queue for. All times are in milliseconds. */
export interface EnqueueOptions extends HoldOptions {
  /**
   * Any number hold the lock together, and nobody alone meanwhile. Who waits to hold it alone is
   * overtaken by no one.
   */
  shared?: boolean | undefined;
  /** Makes it a semaphore of so many permits. */
  limit?: number | undefined;
  /**
   * How many of the limit: 1 without it. More than one needs a lease on the wire: without `lease` it
   * is 33 seconds.
   */
  permits?: number | undefined;
}

/** How long to wait for it. All times are in milliseconds. */
export interface WaitBound {
  /**
   * At most so long, from the call on; 0 is a try; without it there is no bound. A server that is
   * down, or goes down meanwhile, is asked again until then. A try, and the first connection, may
   * take `connectTimeout`.
   */
  wait?: number | undefined;
}

/** What there is to say of a lock that is waited for. */
export interface AcquireOptions extends EnqueueOptions, WaitBound {}

/** What there is to say of several that are waited for at once. */
export interface AcquireAllOptions extends HoldOptions, WaitBound {}

/**
 * Locks on one server, on several that share the keys, or on a cluster.
 *
 *     const locks = new Client("locks.example.com");
 *     await using held = await locks.acquire("my-job", { wait: 10_000, lease: 30_000 });
 *     await write(row, { fence: held.fence, signal: held.signal });
 *
 * It connects to nobody until it is asked to. Calls that wait keep the process alive; what is held,
 * and what listens, does not.
 */
export class Client implements AsyncDisposable {
  readonly #engine: Engine;

  /** One server, several that share the keys, or all there is to say. */
  constructor(options: string | readonly string[] | ClientOptions = {}) {
    const isList = typeof options === "string" || Array.isArray(options);
    this.#engine = new Engine(isList ? { servers: options } : (options as ClientOptions));
  }

  /**
   * Waits for the lock, or for permits of a semaphore when a limit is given.
   *
   * Rejects with `NotAcquired` when the wait is over; the other errors say why.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<HeldLock> {
    const wanted = new Wanted(key, options);
    return new HeldLock(await this.#engine.acquire(wanted, options.wait, options));
  }

  /**
   * Waits for all of several at once, 1 to 64; no part of them is ever held.
   *
   * A key is a lock that is held alone; an item may be shared, or permits of a semaphore. They have
   * one fence, larger than any that was granted for one of them before, and are renewed, lost and
   * released together. They are held by a name: should the program die, they end with their lease,
   * and not before. Of several servers, one must have all the keys.
   */
  async acquireAll(
    items: readonly (string | SetItem)[],
    options: AcquireAllOptions = {},
  ): Promise<HeldLock> {
    const wanted = new WantedSet(items, options.lease, this.#engine.options.name);
    return new HeldLock(await this.#engine.acquire(wanted, options.wait, options));
  }

  /**
   * Holds the lock while the function runs, as `await using` does for a block: for runtimes and
   * compilers that have no such thing. What the function throws is passed on as it is; when it
   * returns, and the lock was lost meanwhile, that is a `LockLost`.
   */
  async using<T>(
    key: string,
    options: AcquireOptions,
    body: (held: HeldLock) => T | Promise<T>,
  ): Promise<T> {
    const held = await this.acquire(key, options);
    let result: T;
    try {
      result = await body(held);
    } catch (failure) {
      await held[asyncDispose]().catch(() => {}); // the failure is what there is to tell
      throw failure;
    }
    await held[asyncDispose]();
    return result;
  }

  /** Joins the queue, and returns at once: the first of two phases. */
  async enqueue(key: string, options: EnqueueOptions = {}): Promise<Place> {
    return new Place(await this.#engine.enqueue(new Wanted(key, options), options));
  }

  /**
   * Listens to the channels that match; of a group, each signal reaches one member.
   *
   * In a pattern `*` is one token of a channel, and `>` all the rest.
   */
  async listen(
    pattern: string,
    options: { group?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<Subscription> {
    const { group, signal } = options;
    return new Subscription(this.#engine, await this.#engine.listen(pattern, group, signal));
  }

  /** How many connections the signal reached. A lost connection may have lost it, too. */
  publish(
    channel: string,
    payload: string | Uint8Array,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<number> {
    return this.#engine.publish(channel, payload, options.signal);
  }

  /** The server's statistics, of a cluster its leader's. Of several servers, say whose. */
  stats(
    options: { server?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<Stats> {
    return this.#engine.stats(options.server, options.signal);
  }

  /** The server that has the key; of a cluster, the one that was last known to lead. */
  serverOf(key: string): string {
    return this.#engine.serverOf(key);
  }

  /** Releases what is held, and gives up all else: calls that wait reject with `Cancelled`. */
  close(): Promise<void> {
    return this.#engine.close();
  }

  [asyncDispose](): Promise<void> {
    return this.close();
  }
}
