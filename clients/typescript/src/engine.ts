/** Everything that a client does, behind the types that its users see. */

import { Acquisition, type Joined, join, type Taken, Terms, withdraw } from "./acquisition.js";
import { askByToken, atLeader } from "./calls.js";
import type { ClientOptions } from "./client-options.js";
import { now } from "./clock.js";
import { Address, Cluster } from "./cluster.js";
import {
  Cancelled,
  Disconnected,
  Draining,
  InvalidRequest,
  LockdError,
  LockLost,
  NotLeader,
  Refused,
} from "./errors.js";
import type { Hold } from "./hold.js";
import { Link, STATS_SIZE_MAX } from "./link.js";
import { Listening, PING_INTERVAL_MS } from "./listening.js";
import { Options } from "./options.js";
import { Renewal } from "./renewal.js";
import { check, countOf, statsOf } from "./replies.js";
import { publishLines, STATS, type Wanted, type Wish } from "./requests.js";
import { WantedSet } from "./sets.js";
import { shardOf } from "./shard.js";
import type { Signal, Stats } from "./values.js";
import { Awake, Latch, Scope, waitUntil } from "./waiting.js";

export type OnLost = (loss: LockLost) => void;

const IDLE_MS_MAX = 10_000; // how old a connection for small calls may be: a server closes silent ones

/** A hold and its renewal, for whoever may release it. */
export class Kept {
  readonly hold: Hold;
  readonly #engine: Engine;
  readonly #renewal: Renewal;
  #ending: AbortController | undefined;

  constructor(engine: Engine, taken: Taken, onLost: OnLost | undefined) {
    this.#engine = engine;
    this.hold = taken.hold;
    this.hold.onEnd.push((end) => this.#ending?.abort(end));
    if (onLost !== undefined) {
      this.hold.onEnd.push((end) => {
        if (!this.hold.isReleased) queueMicrotask(() => onLost(end));
      });
    }
    this.#renewal = new Renewal(taken.hold, taken.link);
  }

  /** Aborted when it ends. */
  get signal(): AbortSignal {
    if (this.#ending === undefined) {
      this.#ending = new AbortController();
      if (this.hold.isEnded) this.#ending.abort(this.hold.whyOver());
    }
    return this.#ending.signal;
  }

  /** Throws `LockLost` when there was nothing left to release. Once is enough. */
  async release(): Promise<void> {
    if (this.hold.isReleased) return;
    const loss = this.hold.whyOver();
    if (loss !== undefined) throw loss;
    const link = this.#renewal.withdraw();
    this.hold.release();
    try {
      await this.#engine.during((scope) => this.#tellServer(scope, link));
    } finally {
      link.close();
    }
  }

  /** Releases it, for an owner who has nothing more to do: a server that does not answer is left to
   * the lease. */
  async leave(): Promise<void> {
    try {
      await this.release();
    } catch (failure) {
      if (failure instanceof LockLost || !(failure instanceof LockdError)) throw failure;
      this.#engine.options.warn(`${this.hold.wanted} is left to its lease: ${failure.message}`);
    }
  }

  async #tellServer(scope: Scope, link: Link): Promise<void> {
    const { cluster, wanted, grant } = this.hold;
    const wasOpen = !link.isClosed;
    const until = now() + cluster.options.releaseTimeout;
    try {
      await askByToken(scope, cluster, link, {
        lines: wanted.release(grant.token),
        until,
        read: (reply) => wanted.readRelease(reply.line),
      });
    } catch (refusal) {
      // A first release whose answer was lost may have been what released it.
      const mayHaveBeen = wasOpen && link.isClosed;
      if (refusal instanceof Refused && !mayHaveBeen) {
        throw this.hold.lost("the server says so", "refused", refusal);
      }
      if (!(refusal instanceof Refused)) throw refusal;
    }
  }
}

/** A place in a queue. */
export class KeptPlace {
  readonly isGranted: boolean;
  readonly #engine: Engine;
  readonly #terms: Terms;
  readonly #onLost: OnLost | undefined;
  #joined: Joined | undefined;

  constructor(engine: Engine, terms: Terms, joined: Joined, onLost: OnLost | undefined) {
    this.#engine = engine;
    this.#terms = terms;
    this.#onLost = onLost;
    this.#joined = joined;
    this.isGranted = joined.grant !== undefined;
  }

  async wait(wait: number | undefined, signal: AbortSignal | undefined): Promise<Kept> {
    return this.#engine.call(signal, async (scope) => {
      const joined = this.#joined;
      if (joined === undefined) throw new InvalidRequest("the place is used up");
      const acquisition = new Acquisition(scope, this.#terms, wait);
      this.#useUp();
      return this.#engine.keep(await acquisition.runFrom(joined), this.#onLost);
    });
  }

  /** The end of the connection gives up the place; a grant is released by name, too. */
  giveUp(): void {
    if (this.#joined === undefined) return;
    const { wanted, link, grant } = this.#joined;
    this.#useUp();
    if (grant !== undefined && !link.isClosed) {
      link.send(wanted.release(grant.token));
      link.close();
    } else {
      link.abort();
    }
  }

  #useUp(): void {
    this.#joined = undefined;
    this.#engine.places.delete(this);
  }
}

/** What may be said of a hold, whatever is held. */
export interface Manner {
  maxHold?: number | undefined;
  onLost?: OnLost | undefined;
  signal?: AbortSignal | undefined;
}

/** Connects to nobody until it is asked to. */
export class Engine {
  readonly options: Options;
  readonly places = new Set<KeptPlace>();

  readonly #clusters: readonly Cluster[];
  readonly #pingInterval: number;
  readonly #kept = new Set<Kept>();
  readonly #listening = new Set<Listening>();
  readonly #withdrawals = new Set<Promise<void>>();
  readonly #calls = new Set<Scope>();
  readonly #awake = new Awake();
  readonly #small = new Map<Cluster, Link>(); // for small calls
  readonly #opening = new Map<Cluster, Latch>();
  #isClosed = false;

  /** `pingInterval` is shorter in tests. */
  constructor(given: ClientOptions, pingInterval = PING_INTERVAL_MS) {
    if (given.servers !== undefined && given.cluster !== undefined) {
      throw new InvalidRequest("servers share the keys, a cluster has one leader: give one list");
    }
    this.options = new Options(given);
    this.#pingInterval = pingInterval;
    if (given.cluster !== undefined) {
      this.#clusters = [new Cluster(parse(given.cluster), this.options)];
    } else {
      const addresses = parse(given.servers ?? "127.0.0.1");
      this.#clusters = addresses.map((address) => new Cluster([address], this.options));
    }
  }

  /** Does it until its caller, or whoever closes the client, gives it up. */
  async call<T>(signal: AbortSignal | undefined, body: (scope: Scope) => Promise<T>): Promise<T> {
    this.#checkOpen();
    return this.during(async (scope) => {
      const giveUp = () => {
        scope.cancel(new Cancelled("the call was given up", { cause: signal?.reason }));
      };
      if (signal?.aborted) giveUp();
      signal?.addEventListener("abort", giveUp, { once: true });
      this.#calls.add(scope);
      try {
        scope.check();
        return await body(scope);
      } finally {
        this.#calls.delete(scope);
        signal?.removeEventListener("abort", giveUp);
      }
    });
  }

  /** Does it, and keeps the process alive meanwhile. */
  async during<T>(body: (scope: Scope) => Promise<T>): Promise<T> {
    this.#awake.begin();
    try {
      return await body(new Scope());
    } finally {
      this.#awake.end();
    }
  }

  // --- locks

  acquire(wanted: Wish, wait: number | undefined, manner: Manner): Promise<Kept> {
    return this.call(manner.signal, async (scope) => {
      const terms = this.#terms(wanted, manner.maxHold);
      const acquisition = new Acquisition(scope, terms, wait);
      try {
        return this.keep(await acquisition.run(), manner.onLost);
      } catch (failure) {
        if (acquisition.isInDoubt && wanted instanceof WantedSet) {
          this.#withdraw(terms.cluster, wanted);
        }
        throw failure;
      }
    });
  }

  enqueue(wanted: Wanted, manner: Manner): Promise<KeptPlace> {
    return this.call(manner.signal, async (scope) => {
      const terms = this.#terms(wanted, manner.maxHold);
      const joined = await join(scope, terms, wanted);
      const place = new KeptPlace(this, terms, joined, manner.onLost);
      this.places.add(place);
      if (this.#isClosed) place.giveUp();
      this.#checkOpen();
      return place;
    });
  }

  keep(taken: Taken, onLost: OnLost | undefined): Kept {
    if (this.#isClosed) {
      taken.link.send(taken.hold.wanted.release(taken.hold.grant.token));
      taken.link.close();
    }
    this.#checkOpen();
    const kept = new Kept(this, taken, onLost);
    this.#kept.add(kept);
    taken.hold.onEnd.push(() => this.#kept.delete(kept));
    if (taken.hold.isEnded) this.#kept.delete(kept);
    return kept;
  }

  // --- signals and statistics

  listen(
    pattern: string,
    group: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Listening> {
    return this.call(signal, async (scope) => {
      const listening = new Listening(this.#clusters, pattern, group, this.#pingInterval);
      await listening.begin(scope);
      this.#listening.add(listening);
      if (this.#isClosed) this.unlisten(listening);
      return listening;
    });
  }

  receive(
    listening: Listening,
    wait: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Signal | undefined> {
    return this.call(signal, (scope) => listening.next(scope, wait));
  }

  unlisten(listening: Listening): void {
    listening.end();
    this.#listening.delete(listening);
  }

  publish(
    channel: string,
    payload: string | Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    return this.call(signal, async (scope) => {
      const lines = publishLines(channel, payload);
      return countOf(await this.#ask(scope, this.#clusterOf(channel), lines, false));
    });
  }

  stats(server: string | undefined, signal: AbortSignal | undefined): Promise<Stats> {
    return this.call(signal, async (scope) => {
      const [cluster, member] = this.#find(server);
      if (member === undefined || cluster.isAlone) {
        return statsOf(await this.#ask(scope, cluster, STATS, true));
      }
      // Of a cluster this very server, whether it leads or not.
      const until = now() + this.options.connectTimeout;
      const link = await Link.open(scope, cluster.member(member), until);
      try {
        return statsOf(await this.#askAt(scope, link, STATS));
      } finally {
        link.close();
      }
    });
  }

  serverOf(key: string): string {
    const cluster = this.#clusterOf(key);
    return String(cluster.member(cluster.leader).address);
  }

  /** Gives up calls, places and subscriptions, and releases what is held. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const why = new Cancelled("the client was closed");
    for (const scope of this.#calls) scope.cancel(why);
    for (const place of this.places) place.giveUp();
    for (const listening of this.#listening) listening.end(why);
    await Promise.allSettled([...this.#kept].map((kept) => kept.leave()));
    await Promise.all(this.#withdrawals);
    for (const link of this.#small.values()) link.close();
    this.#small.clear();
  }

  /** A small call, on a connection that all of them share. */
  async #ask(
    scope: Scope,
    cluster: Cluster,
    lines: string | Uint8Array,
    repeats: boolean,
  ): Promise<string> {
    const link = await this.#smallLink(scope, cluster);
    try {
      return await this.#askAt(scope, link, lines);
    } catch (failure) {
      const didNothing = failure instanceof NotLeader || failure instanceof Draining;
      if (!didNothing && !(repeats && failure instanceof Disconnected)) throw failure;
    }
    if (this.#small.get(cluster) === link) this.#small.delete(cluster);
    if (link.isIdle) link.close();
    return this.#askAt(scope, await this.#smallLink(scope, cluster), lines);
  }

  async #smallLink(scope: Scope, cluster: Cluster): Promise<Link> {
    for (let other = this.#opening.get(cluster); other; other = this.#opening.get(cluster)) {
      await waitUntil(scope, Number.POSITIVE_INFINITY, other);
    }
    const known = this.#small.get(cluster);
    if (known !== undefined && !known.isClosed) {
      if (!known.isIdle || now() - known.heardAt < IDLE_MS_MAX) return known;
      known.close();
    }
    const opening = new Latch();
    this.#opening.set(cluster, opening);
    try {
      const link = await atLeader(scope, cluster, now(), async (open) => open);
      this.#small.set(cluster, link);
      return link;
    } finally {
      this.#opening.delete(cluster);
      opening.set();
    }
  }

  async #askAt(scope: Scope, link: Link, lines: string | Uint8Array): Promise<string> {
    const until = now() + this.options.replyTimeout;
    const manner = { replySizeMax: STATS_SIZE_MAX, staysOpen: true };
    const { line } = await link.ask(scope, lines, until, manner);
    check(line);
    return line;
  }

  #terms(wanted: Wish, maxHold: number | undefined): Terms {
    const cluster = this.#clusterOf(wanted.key);
    if (wanted.keys.some((key) => this.#clusterOf(key) !== cluster)) {
      throw new InvalidRequest(`the keys of a ${wanted} live on different servers`);
    }
    return new Terms(cluster, wanted, maxHold);
  }

  /** Does not wait for it. What cannot be told is left to the lease. */
  #withdraw(cluster: Cluster, wanted: WantedSet): void {
    const withdrawal = this.during((scope) => withdraw(scope, cluster, wanted)).catch(() => {});
    this.#withdrawals.add(withdrawal);
    void withdrawal.then(() => this.#withdrawals.delete(withdrawal));
  }

  #clusterOf(key: string): Cluster {
    return this.#cluster(shardOf(key, this.#clusters.length));
  }

  #cluster(index: number): Cluster {
    const cluster = this.#clusters[index];
    if (cluster === undefined) throw new RangeError(`there is no server ${index}`);
    return cluster;
  }

  /** The cluster that has the server, and which of its members it is, if one was named. */
  #find(server: string | undefined): [Cluster, number | undefined] {
    if (server === undefined) {
      if (this.#clusters.length === 1) return [this.#cluster(0), undefined];
      throw new InvalidRequest("there are several servers: say whose statistics");
    }
    for (const cluster of this.#clusters) {
      const member = cluster.find(server);
      if (member !== undefined) return [cluster, member];
    }
    throw new InvalidRequest(`${server} is none of the servers that were given`);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new Cancelled("the client was closed");
  }
}

function parse(addresses: string | readonly string[]): Address[] {
  const texts = typeof addresses === "string" ? [addresses] : addresses;
  if (texts.length === 0) throw new InvalidRequest("a client needs a server");
  return texts.map((text) => Address.parse(text));
}
