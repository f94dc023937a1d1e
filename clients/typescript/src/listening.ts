/** Listens to a pattern at every server, and goes on listening when one is gone for a while. */

import { atLeader } from "./calls.js";
import { NEVER, now } from "./clock.js";
import type { Cluster } from "./cluster.js";
import { Cancelled, ConnectionFailed, type LockdError } from "./errors.js";
import type { Link } from "./link.js";
import { check } from "./replies.js";
import { listenLines, PING } from "./requests.js";
import type { Signal } from "./values.js";
import { deadlineOf, Latch, Scope, waitUntil } from "./waiting.js";

/** How long a connection may be silent before it is asked whether it lives. */
export const PING_INTERVAL_MS = 15_000;

const SIGNALS_MAX = 1024;
const SIGNAL_BYTES_MAX = 16 * 1024 * 1024;

/** The signals of one pattern, in the order in which they came. */
export class Listening {
  /** How many signals were dropped, because they were not asked for soon enough. */
  dropped = 0;
  /** How often a connection was made anew: signals may have been missed. */
  gaps = 0;

  readonly #clusters: readonly Cluster[];
  readonly #lines: string;
  readonly #pingInterval: number;
  readonly #scope = new Scope();
  readonly #links = new Set<Link>();
  #signals: Signal[] = [];
  #bytes = 0;
  #failure: LockdError | undefined;
  #news = new Latch();

  constructor(
    clusters: readonly Cluster[],
    pattern: string,
    group: string | undefined,
    pingInterval: number,
  ) {
    this.#clusters = clusters;
    this.#lines = listenLines(pattern, group);
    this.#pingInterval = pingInterval;
  }

  get isEnded(): boolean {
    return this.#failure !== undefined;
  }

  /** Returns when all servers have confirmed. */
  async begin(scope: Scope): Promise<void> {
    const links: [Cluster, Link][] = [];
    try {
      for (const cluster of this.#clusters) {
        links.push([cluster, await this.#connect(scope, cluster, now())]);
      }
    } catch (failure) {
      this.end();
      throw failure;
    }
    for (const [cluster, link] of links) void this.#keep(cluster, link);
  }

  /** The next signal; nothing when none comes within the wait. */
  async next(scope: Scope, wait: number | undefined): Promise<Signal | undefined> {
    const deadline = deadlineOf(wait);
    for (;;) {
      const signal = this.#signals.shift();
      if (signal !== undefined) {
        this.#bytes -= sizeOf(signal);
        return signal;
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (now() >= deadline) return undefined;
      await waitUntil(scope, deadline, this.#news);
    }
  }

  end(why: LockdError = new Cancelled("the subscription was closed")): void {
    this.#failure ??= why;
    this.#scope.cancel();
    for (const link of this.#links) link.abort();
    this.#tell();
  }

  async #keep(cluster: Cluster, first: Link): Promise<void> {
    try {
      for (let link = first; ; this.gaps += 1) {
        await this.#watch(link);
        this.#links.delete(link);
        cluster.options.warn(`${link.failure.message}; listening again`);
        link = await this.#connect(this.#scope, cluster, NEVER);
      }
    } catch (failure) {
      this.end(failure as LockdError); // one that waiting does not cure
    }
  }

  /** Until the connection has ended. One that is silent is asked whether it lives. */
  async #watch(link: Link): Promise<void> {
    while (!link.isClosed) {
      await waitUntil(this.#scope, link.heardAt + this.#pingInterval, link.closed);
      if (link.isClosed || now() < link.heardAt + this.#pingInterval) continue;
      try {
        await link.ask(this.#scope, PING, now() + link.endpoint.options.replyTimeout);
      } catch (failure) {
        if (!(failure instanceof ConnectionFailed)) throw failure;
      }
    }
  }

  #connect(scope: Scope, cluster: Cluster, deadline: number): Promise<Link> {
    return atLeader(scope, cluster, deadline, async (link) => {
      link.onSignal = (signal) => this.#keepSignal(signal);
      const until = now() + cluster.options.replyTimeout;
      check((await link.ask(scope, this.#lines, until)).line);
      this.#links.add(link);
      return link;
    });
  }

  #keepSignal(signal: Signal): void {
    this.#signals.push(signal);
    this.#bytes += sizeOf(signal);
    while (this.#signals.length > SIGNALS_MAX || this.#bytes > SIGNAL_BYTES_MAX) {
      const oldest = this.#signals.shift();
      if (oldest === undefined) break;
      this.#bytes -= sizeOf(oldest);
      this.dropped += 1;
    }
    this.#tell();
  }

  #tell(): void {
    const news = this.#news;
    this.#news = new Latch();
    news.set();
  }
}

function sizeOf(signal: Signal): number {
  return signal.channel.length + signal.payload.length;
}
