/** One wish for a lock, from the first request to the grant, through whatever happens meanwhile. */

import { randomBytes } from "node:crypto";

import { askByToken, atLeader } from "./calls.js";
import { NEVER, now } from "./clock.js";
import type { Cluster } from "./cluster.js";
import {
  ConnectionFailed,
  Disconnected,
  InvalidRequest,
  LeaseExpired,
  NoReply,
  NotAcquired,
  Refused,
  Unsupported,
} from "./errors.js";
import { Hold } from "./hold.js";
import type { Link } from "./link.js";
import { renewalDue, saysGone } from "./renewal.js";
import { type Grant, grantOf, remainingOf } from "./replies.js";
import { secondsToName, type Wanted } from "./requests.js";
import { deadlineOf, type Scope } from "./waiting.js";

const REFUSALS_MAX = 3; // of one request in a row: then it is meant
const ROUNDING_MS = 100; // what the server's count of a wait may exceed the client's by

/** What is wanted, and where. */
export class Terms {
  /** Of this acquisition: asking twice with it is asking once. */
  readonly #secret = randomBytes(8).toString("hex");

  constructor(
    readonly cluster: Cluster,
    readonly wanted: Wanted,
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
    throw new Unsupported(`${link.endpoint.address} knows no shared locks and no permits`);
  }
}

/** A hold, and the connection on which it was granted. */
export interface Taken {
  readonly hold: Hold;
  readonly link: Link;
}

/** A place in the queue, and its connection; the grant, if it came at once. */
export interface Joined {
  readonly link: Link;
  readonly grant: Grant | undefined;
}

/** Joins the queue, and returns. */
export function join(scope: Scope, terms: Terms): Promise<Joined> {
  const { cluster, wanted } = terms;
  return atLeader(scope, cluster, now(), async (link) => {
    const until = now() + cluster.options.replyTimeout;
    const reply = await link.ask(scope, wanted.enqueue(terms.secretFor(link)), until);
    return { link, grant: grantOf(reply.line, reply.sentAt, wanted.lease) };
  });
}

/** Asks until its own deadline. Whoever cancels it gives up its place in the queue at once. */
export class Acquisition {
  readonly #scope: Scope;
  readonly #terms: Terms;
  readonly #wanted: Wanted;
  readonly #replyTimeout: number;
  readonly #deadline: number;
  #wasQueued = false; // and is so no more
  #queuedAgain = false;
  #refusals = 0;

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

  run(): Promise<Taken> {
    return atLeader(this.#scope, this.#terms.cluster, this.#deadline, (link) =>
      this.#acquire(link),
    );
  }

  /** Goes on from a place in the queue; joins it again, at its end, if the place is lost. */
  async runFrom(place: Joined): Promise<Taken> {
    try {
      const grant = place.grant ?? (await this.#awaitTurn(place.link));
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
    return this.#take(link, tried ?? (await this.#ask(link, this.#left())));
  }

  #ask(link: Link, wait: number): Promise<Grant | undefined> {
    const secret = this.#terms.secretFor(link);
    return this.#wait(link, wait, (seconds) => this.#wanted.acquire(seconds, secret));
  }

  #awaitTurn(link: Link): Promise<Grant | undefined> {
    return this.#wait(link, this.#left(), (seconds) => this.#wanted.awaitTurn(seconds));
  }

  /** Waits in the queue. A wait that is no whole number of seconds is ended by leaving. */
  async #wait(
    link: Link,
    wait: number,
    lines: (seconds: number) => string,
  ): Promise<Grant | undefined> {
    const named = secondsToName(wait);
    const leaves = wait !== NEVER && 1000 * named - wait > ROUNDING_MS;
    const askedAt = now();
    const until = askedAt + wait + (leaves ? 0 : this.#replyTimeout);
    try {
      const reply = await link.ask(this.#scope, lines(named), until);
      return grantOf(reply.line, reply.sentAt, this.#wanted.lease);
    } catch (failure) {
      if (failure instanceof NoReply && leaves) return undefined;
      if (failure instanceof Disconnected) this.#wasQueued = named > 0;
      if (!(failure instanceof Refused)) throw failure;
      this.#judge(failure, named, askedAt);
      throw new Disconnected("the server ended the wait", { cause: failure });
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
    if (granted === undefined) {
      throw new NotAcquired(`${this.#wanted} was not granted within the wait`, {
        key: this.#wanted.key,
        queuedAgain: this.#queuedAgain,
      });
    }
    const isDue = now() >= renewalDue(granted.sentAt, granted.lease);
    const isDoubtful = isDue || link.isClosed || link.losses.has(granted.token);
    const grant = isDoubtful ? await this.#confirm(link, granted) : granted;
    return { hold: new Hold(cluster, this.#wanted, grant, this.#queuedAgain, maxHold), link };
  }

  async #confirm(link: Link, grant: Grant): Promise<Grant> {
    const { cluster } = this.#terms;
    const lines = this.#wanted.renew(grant.token, grant.lease);
    const until = now() + Math.min(grant.lease, this.#replyTimeout);
    try {
      const reply = await askByToken(this.#scope, cluster, link, lines, until);
      return { ...grant, lease: remainingOf(reply.line, grant.lease), sentAt: reply.sentAt };
    } catch (failure) {
      // It may be in force: it is released as well as can be without waiting.
      link.send(this.#wanted.release(grant.token));
      link.close();
      throw saysGone(failure) ? this.#lapsed() : failure;
    }
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
