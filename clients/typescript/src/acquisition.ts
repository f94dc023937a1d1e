/** One wish for a lock, from the first request to the grant, through whatever happens meanwhile. */

import { randomBytes } from "node:crypto";

import { askByToken, atLeader } from "./calls.js";
import { NEVER, now } from "./clock.js";
import type { Cluster } from "./cluster.js";
import {
  ConnectionFailed,
  Disconnected,
  Draining,
  InvalidRequest,
  LeaseExpired,
  LockdError,
  LockLost,
  NoReply,
  NotAcquired,
  NotLeader,
  Refused,
  Unsupported,
} from "./errors.js";
import { Hold } from "./hold.js";
import type { Link, Reply } from "./link.js";
import { renewalDue, saysGone } from "./renewal.js";
import { type Conflict, type Grant, shown } from "./replies.js";
import type { Wanted, Wish } from "./requests.js";
import type { WantedSet } from "./sets.js";
import { deadlineOf, type Scope, waitUntil } from "./waiting.js";

const REFUSALS_MAX = 3; // of one request in a row: then it is meant
const CUT_PAUSE_MS = 50; // after a wait that the server has cut
const CONFLICT_MS_MAX = 1000; // of the question who was in the way
const ROUNDING_MS = 100; // what the server's count of a wait may exceed the client's by

/** What is wanted, and where. */
export class Terms {
  /** Of this acquisition: asking twice with it is asking once. */
  readonly #secret = randomBytes(8).toString("hex");

  constructor(
    readonly cluster: Cluster,
    readonly wanted: Wish,
    readonly maxHold: number | undefined,
  ) {
    if (maxHold !== undefined && !(maxHold > 0)) {
      throw new InvalidRequest("maxHold is more than 0 milliseconds");
    }
  }

  /**
   * Only a server that knows `client` knows it. Throws `Unsupported` for another server that would
   * misunderstand the rest, too.
   */
  secretFor(link: Link): string | undefined {
    if (link.knowsClient) return this.#secret;
    if (this.wanted.isPlain) return undefined;
    const { address } = link.endpoint;
    throw new Unsupported(`${address} knows no shared locks, several permits or several keys`);
  }
}

/** A hold, and the connection on which it was granted. */
export interface Taken {
  readonly hold: Hold;
  readonly link: Link;
}

/** A place in the queue, and its connection; the grant, if it came at once. */
export interface Joined {
  readonly wanted: Wanted;
  readonly link: Link;
  readonly grant: Grant | undefined;
}

/** Joins the queue, and returns. */
export function join(scope: Scope, terms: Terms, wanted: Wanted): Promise<Joined> {
  const { cluster } = terms;
  return atLeader(scope, cluster, now(), async (link) => {
    const until = now() + cluster.options.replyTimeout;
    const reply = await link.ask(scope, wanted.enqueue(terms.secretFor(link)), until);
    return { wanted, link, grant: wanted.readGrant(reply.line, reply.sentAt) };
  });
}

/**
 * Releases what may have been granted to an acquisition that ended before it heard of it. Who asks
 * again under its name gets its own grant back, and no other hold has this name.
 */
export async function withdraw(scope: Scope, cluster: Cluster, wanted: WantedSet): Promise<void> {
  const until = now() + cluster.options.releaseTimeout;
  const grant = await askByToken(scope, cluster, undefined, {
    lines: wanted.takeBack(),
    until,
    read: (reply) => wanted.readGrant(reply.line, reply.sentAt),
  });
  if (grant === undefined) return;
  await askByToken(scope, cluster, undefined, {
    lines: wanted.release(grant.token),
    until,
    read: (reply) => wanted.readRelease(reply.line),
  });
}

/** Asks until its own deadline. Whoever cancels it gives up its place in the queue at once. */
export class Acquisition {
  readonly #scope: Scope;
  readonly #terms: Terms;
  readonly #wanted: Wish;
  readonly #replyTimeout: number;
  readonly #deadline: number;
  #wasQueued = false; // and is so no more
  #queuedAgain = false;
  #refusals = 0;
  #isInDoubt = false;
  #lastLine = "";

  constructor(scope: Scope, terms: Terms, wait: number | undefined) {
    if (wait !== undefined && !(wait >= 0)) {
      throw new InvalidRequest("a wait is not negative; without one there is no bound");
    }
    this.#scope = scope;
    this.#terms = terms;
    this.#wanted = terms.wanted;
    this.#replyTimeout = terms.cluster.options.replyTimeout;
    this.#deadline = deadlineOf(wait);
  }

  /** Whether it was asked for, and the answer did not come. */
  get isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  run(): Promise<Taken> {
    return atLeader(this.#scope, this.#terms.cluster, this.#deadline, (link) =>
      this.#acquire(link),
    );
  }

  /** Goes on from a place in the queue; joins it again, at its end, if the place is lost. */
  async runFrom(place: Joined): Promise<Taken> {
    try {
      const grant = place.grant ?? (await this.#awaitTurn(place));
      return await this.#take(place.link, grant);
    } catch (failure) {
      place.link.abort();
      if (!(failure instanceof ConnectionFailed) || now() >= this.#deadline) throw failure;
    }
    this.#wasQueued = true;
    return this.run();
  }

  async #acquire(link: Link): Promise<Taken> {
    this.#queuedAgain ||= this.#wasQueued;
    const left = this.#left();
    // A wait may be shorter than the way there and back: so it begins with a try.
    const tried = left > 0 && left < 1000 ? await this.#ask(link, 0) : undefined;
    let grant = tried ?? (await this.#ask(link, this.#left()));
    while (grant === undefined && now() < this.#deadline) {
      // A server may cut a wait.
      this.#queuedAgain = true;
      await waitUntil(this.#scope, Math.min(now() + CUT_PAUSE_MS, this.#deadline));
      grant = await this.#ask(link, this.#left());
    }
    return this.#take(link, grant);
  }

  #ask(link: Link, wait: number): Promise<Grant | undefined> {
    const secret = this.#terms.secretFor(link);
    return this.#wait(link, wait, (named) => this.#wanted.acquire(named, secret));
  }

  #awaitTurn({ link, wanted }: Joined): Promise<Grant | undefined> {
    return this.#wait(link, this.#left(), (named) => wanted.awaitTurn(named));
  }

  /** Waits in the queue. A wait that cannot be named exactly is ended by leaving. */
  async #wait(
    link: Link,
    wait: number,
    lines: (named: number) => string,
  ): Promise<Grant | undefined> {
    const named = this.#wanted.waitToName(wait);
    const leaves = wait !== NEVER && named - wait > ROUNDING_MS;
    const askedAt = now();
    const until = askedAt + wait + (leaves ? 0 : this.#replyTimeout);
    try {
      return await this.#answer(link, lines(named), until);
    } catch (failure) {
      if (failure instanceof NoReply && leaves) return undefined;
      // A leader that follows now ends the waits at it by saying so.
      const isEnded = [Disconnected, Draining, NotLeader].some((kind) => failure instanceof kind);
      if (isEnded) this.#wasQueued = named > 0;
      if (!(failure instanceof Refused)) throw failure;
      this.#judge(failure, named, askedAt);
      throw new Disconnected("the server ended the wait", { cause: failure });
    }
  }

  async #answer(link: Link, lines: string, until: number): Promise<Grant | undefined> {
    const wasInDoubt = this.#isInDoubt;
    this.#isInDoubt = true;
    const reply = await link.ask(this.#scope, lines, until);
    this.#isInDoubt = wasInDoubt;
    this.#lastLine = reply.line;
    try {
      const grant = this.#wanted.readGrant(reply.line, reply.sentAt);
      this.#isInDoubt = false;
      return grant;
    } catch (failure) {
      if (failure instanceof Refused) this.#isInDoubt = false;
      throw failure;
    }
  }

  /** Throws it, unless it may be the plain `error` by which a stopping server ends waits. */
  #judge(refusal: Refused, named: number, askedAt: number): void {
    this.#refusals = now() - askedAt > 1000 ? 1 : this.#refusals + 1;
    if (refusal.reply !== "error" || named === 0 || this.#refusals >= REFUSALS_MAX) throw refusal;
    this.#wasQueued = true;
  }

  /**
   * Makes it a hold. One that is due for renewal already is renewed first, so that nobody is given
   * what ran out while the reply was under way or this process was stopped.
   */
  async #take(link: Link, granted: Grant | undefined): Promise<Taken> {
    const { cluster, maxHold } = this.#terms;
    if (granted === undefined) throw this.#notAcquired(await this.#conflict(link));
    const cause = link.losses.get(granted.token);
    if (cause !== undefined) throw this.#takenBack(cause);
    const isDoubtful = link.isClosed || now() >= renewalDue(granted.sentAt, granted.lease);
    const grant = isDoubtful ? await this.#confirm(link, granted) : granted;
    return { hold: new Hold(cluster, this.#wanted, grant, this.#queuedAgain, maxHold), link };
  }

  /**
   * Who was in the way, as the refusal says or a server that knows is asked. Without an answer
   * nothing is known.
   */
  async #conflict(link: Link): Promise<Conflict> {
    const question = this.#wanted.askConflict();
    try {
      if (question === undefined) return this.#wanted.readConflict(this.#lastLine);
      if (!link.knowsClient) return {};
      const { line } = await link.ask(this.#scope, question, now() + CONFLICT_MS_MAX);
      return this.#wanted.readConflict(line);
    } catch (failure) {
      this.#scope.check();
      if (!(failure instanceof LockdError)) throw failure;
      return {};
    }
  }

  #notAcquired(conflict: Conflict): NotAcquired {
    const name = conflict.client ?? conflict.holder;
    const byWhom = name === undefined ? "" : `, held by ${shown(name)}`;
    return new NotAcquired(`${this.#wanted} was not granted within the wait${byWhom}`, {
      key: this.#wanted.key,
      queuedAgain: this.#queuedAgain,
      ...conflict,
    });
  }

  async #confirm(link: Link, grant: Grant): Promise<Grant> {
    const { cluster } = this.#terms;
    const until = now() + Math.min(grant.lease, this.#replyTimeout);
    const lines = this.#wanted.renew(grant.token, grant.lease);
    const read = ({ line, sentAt }: Reply) => {
      return { ...grant, lease: this.#wanted.readRenewal(line, grant.lease), sentAt };
    };
    try {
      return await askByToken(this.#scope, cluster, link, { lines, until, read });
    } catch (failure) {
      // It may be in force: it is released as well as can be without waiting.
      link.send(this.#wanted.release(grant.token));
      this.#isInDoubt = link.isClosed;
      link.close();
      throw saysGone(failure) ? this.#lapsed() : failure;
    }
  }

  /** The server has ended what nobody had yet. */
  #takenBack(cause: string): Error {
    if (cause === "expired") return this.#lapsed();
    const told = `${this.#wanted} is held no more: the server says that it was ${cause}`;
    return new LockLost(told, { key: this.#wanted.key, reason: cause });
  }

  /** The turn came and went. There may be time to ask again. */
  #lapsed(): Error {
    this.#wasQueued = true;
    const lapsed = `${this.#wanted} was granted, and its lease ran out before anyone took it`;
    if (now() < this.#deadline) return new Disconnected(lapsed);
    return new LeaseExpired(lapsed, "error_lease_expired");
  }

  #left(): number {
    return Math.max(this.#deadline - now(), 0);
  }
}
