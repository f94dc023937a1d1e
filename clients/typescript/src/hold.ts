/** One grant, shared by its owner and by the renewal that keeps it. */

import { MARGIN_MS, now } from "./clock.js";
import type { Cluster } from "./cluster.js";
import {
  Denied,
  type LockdError,
  LockLost,
  LockSuspect,
  type LossReason,
  Unauthorized,
} from "./errors.js";
import type { Grant } from "./replies.js";
import type { Wish } from "./requests.js";

/** The end of a lease of so many milliseconds, for one who asked for it at `sentAt`. */
export function certainUntil(sentAt: number, lease: number): number {
  return sentAt + lease - MARGIN_MS;
}

/**
 * The end of a hold, as far as this client can know it.
 *
 * The owner asks, the renewal extends, and the process may be stopped between any two steps of
 * either. Whoever first finds that the time has passed ends it, so that no renewal that is confirmed
 * late makes anybody believe again: an answer of false is final, for everybody.
 */
export class Certainty {
  #until: number;
  #isOver = false;
  #isSuspect = false;

  constructor(until: number) {
    this.#until = until;
  }

  /** When it ends, or ended. */
  get until(): number {
    return this.#until;
  }

  /** Whether it lasts. `time` must have been read after the call was asked for. */
  lasts(time: number): boolean {
    if (time >= this.#until) this.#isOver = true;
    return !this.#isOver;
  }

  /** Whether it lasts, but for a server that may have released the hold already. */
  isSuspect(time: number): boolean {
    return this.lasts(time) && this.#isSuspect;
  }

  /** Makes it suspect until it is extended. */
  suspect(): void {
    this.#isSuspect = true;
  }

  /** Moves its end, to an earlier time too. False when it was over by `time`. */
  extend(time: number, until: number): boolean {
    if (this.lasts(time)) {
      this.#until = until;
      this.#isSuspect = false;
    }
    return !this.#isOver;
  }

  /** Ends it now. False when it was over already. */
  end(time: number): boolean {
    const lasted = this.lasts(time);
    this.#isOver = true;
    if (lasted) this.#until = time;
    return lasted;
  }
}

/** Whether the server refuses this client, which another try does not cure. */
export function isDefinite(failure: LockdError | undefined): boolean {
  return failure instanceof Denied || failure instanceof Unauthorized;
}

export class Hold {
  /** Why it was not renewed when that was last tried; nothing once a renewal is confirmed. */
  lastError: LockdError | undefined;
  readonly certainty: Certainty;
  readonly heldUntilMax: number | undefined;
  /** Are called when it ends, by a loss or by a release. */
  readonly onEnd: ((end: LockLost) => void)[] = [];
  #loss: LockLost | undefined;
  #isReleased = false;

  constructor(
    readonly cluster: Cluster,
    readonly wanted: Wish,
    readonly grant: Grant,
    readonly queuedAgain: boolean,
    maxHold: number | undefined,
  ) {
    this.certainty = new Certainty(certainUntil(grant.sentAt, grant.lease));
    this.heldUntilMax = maxHold === undefined ? undefined : now() + maxHold;
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  get isEnded(): boolean {
    return this.#isReleased || this.#loss !== undefined;
  }

  lost(why: string, reason: LossReason, cause: unknown = this.lastError): LockLost {
    const about = { key: this.wanted.key, reason };
    return new LockLost(`${this.wanted} is held no more: ${why}`, about, cause ? { cause } : {});
  }

  refused(refusal: LockdError): LockLost {
    return this.lost(`it cannot be renewed any more: ${refusal.message}`, "unauthorized", refusal);
  }

  /** Ends it, and tells those who asked to be told. Once. */
  lose(loss: LockLost): void {
    if (this.isEnded) return;
    this.#loss = loss;
    this.#end(loss);
  }

  /** Ends it by its owner's wish. */
  release(): void {
    this.#isReleased = true;
    this.#end(this.#released());
  }

  /** Ends it by the server's word. */
  loseAsTold(cause: string): void {
    const isOwn = cause === "expired" && this.#isHeldForMax(now());
    this.lose(
      isOwn ? this.#heldForMax() : this.lost(`the server says that it was ${cause}`, cause),
    );
  }

  /** Nothing while it is held, by the clock of this moment. */
  whyOver(): LockLost | undefined {
    const time = now();
    if (this.certainty.lasts(time)) return undefined;
    if (this.#loss !== undefined) return this.#loss;
    if (this.#isReleased) return this.#released();
    if (this.#isHeldForMax(time)) return this.#heldForMax();
    const { lastError } = this;
    if (lastError !== undefined && isDefinite(lastError)) return this.refused(lastError);
    return this.lost("its lease ran out without a confirmed renewal", "unsure");
  }

  whySuspect(): LockSuspect | undefined {
    if (!this.certainty.isSuspect(now())) return undefined;
    const cause = this.lastError;
    const why = `${this.wanted} is suspect, since its connection has ended: ${cause?.message}`;
    return new LockSuspect(why, this.wanted.key, { cause });
  }

  #isHeldForMax(time: number): boolean {
    return this.heldUntilMax !== undefined && time >= this.heldUntilMax;
  }

  #heldForMax(): LockLost {
    return this.lost("it was not renewed for longer than maxHold", "max_hold");
  }

  #released(): LockLost {
    return this.lost("its owner released it", "released");
  }

  #end(end: LockLost): void {
    this.certainty.end(now());
    for (const tell of this.onEnd) tell(end);
  }
}
