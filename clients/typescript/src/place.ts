import { asyncDispose, endWhenForgotten } from "./disposal.js";
import type { KeptPlace } from "./engine.js";
import { HeldLock } from "./held-lock.js";

/** How long to wait, and what gives it up. */
export interface WaitOptions {
  /** At most so many milliseconds; 0 is a try; without it there is no bound. */
  wait?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A place in a queue: wait for its turn, or give it up. One that is forgotten is given up. */
export class Place implements AsyncDisposable {
  readonly #kept: KeptPlace;

  /** @internal */
  constructor(kept: KeptPlace) {
    this.#kept = kept;
    endWhenForgotten(this, () => kept.giveUp());
  }

  /** Whether it was granted at once. Its lease runs, and nobody renews it before `wait`. */
  get isGranted(): boolean {
    return this.#kept.isGranted;
  }

  /**
   * Waits for its turn. Whatever comes of it, the place is used up.
   *
   * A place that was lost with its connection is asked for again, at the end of the queue:
   * `queuedAgain`. `LeaseExpired`: the turn came, and nobody took it in time.
   */
  async wait(options: WaitOptions = {}): Promise<HeldLock> {
    return new HeldLock(await this.#kept.wait(options.wait, options.signal));
  }

  /** Leaves the queue. Does nothing when the place is used up. */
  giveUp(): void {
    this.#kept.giveUp();
  }

  async [asyncDispose](): Promise<void> {
    this.giveUp();
  }
}
