import { now } from "./clock.js";
import { asyncDispose, endWhenForgotten, isRemembered } from "./disposal.js";
import type { Kept } from "./engine.js";
import { type LockdError, LockLost } from "./errors.js";
import { fenceOf } from "./replies.js";

/**
 * A lock, or permits of a semaphore, that is held and renews itself until it is released.
 *
 * It does not keep the process alive: when a program ends, its connections end, and the server
 * releases what they hold. One that nobody refers to any more, and whose `signal` nobody asked for,
 * is released with a warning.
 */
export class HeldLock implements AsyncDisposable {
  readonly #kept: Kept;
  #wasTold = false;

  /** @internal */
  constructor(kept: Kept) {
    this.#kept = kept;
    endWhenForgotten(this, () => abandon(kept));
  }

  /** Of several, the first. */
  get key(): string {
    return this.#kept.hold.wanted.key;
  }

  get keys(): readonly string[] {
    return this.#kept.hold.wanted.keys;
  }

  /** Names the grant to the server. Whoever knows it may release it. */
  get token(): string {
    return this.#kept.hold.grant.token;
  }

  /**
   * The fencing token: it rises with every grant of the key. Several keys have one. Hand it to
   * whatever the lock protects, and let that refuse one smaller than it has seen. It has 64 bits,
   * more than a `number` can tell apart.
   */
  get fence(): bigint {
    return fenceOf(this.token);
  }

  /** In milliseconds, as it was granted. */
  get lease(): number {
    return this.#kept.hold.grant.lease;
  }

  /** Whether the place in the queue was lost while waiting, and asked for again. */
  get queuedAgain(): boolean {
    return this.#kept.hold.queuedAgain;
  }

  /** Whether it is certain at this moment, and so `state` is `held`. */
  get isHeld(): boolean {
    return this.state === "held";
  }

  /**
   * `suspect` while its connection is gone and no new one has renewed it; `lost`, which is final,
   * also after a release.
   */
  get state(): "held" | "suspect" | "lost" {
    const { certainty } = this.#kept.hold;
    const time = now();
    if (certainty.isSuspect(time)) return "suspect";
    return certainty.lasts(time) ? "held" : "lost";
  }

  /** Why the last renewal failed; nothing once a renewal is confirmed. */
  get lastError(): LockdError | undefined {
    return this.#kept.hold.lastError;
  }

  /** For how many milliseconds its lease runs if no renewal is confirmed any more. */
  get remaining(): number {
    const { certainty } = this.#kept.hold;
    const time = now();
    return certainty.lasts(time) ? certainty.until - time : 0;
  }

  /** Why it is held no more; nothing while it is held or suspect. */
  get loss(): LockLost | undefined {
    return this.#kept.hold.whyOver();
  }

  /**
   * Aborted when it is held no more, by a loss or by a release; its reason is the `LockLost`. It is
   * prompt, where `isHeld` and `check` are exact: a program that blocks its event loop hears late.
   */
  get signal(): AbortSignal {
    isRemembered(this); // whoever has the signal goes on with what it stands for
    return this.#kept.signal;
  }

  /** Throws `LockLost` when it is held no more, and `LockSuspect` when it may be. */
  check(): void {
    const why = this.loss ?? this.#kept.hold.whySuspect();
    if (why === undefined) return;
    this.#wasTold ||= why instanceof LockLost;
    throw why;
  }

  /** Rejects with `LockLost` when it was held no more. Does nothing the second time. */
  async release(): Promise<void> {
    isRemembered(this);
    try {
      await this.#kept.release();
    } catch (failure) {
      this.#wasTold ||= failure instanceof LockLost;
      throw failure;
    }
  }

  /**
   * Releases it; a server that does not answer is left to the lease. To leave the block is the last
   * check: `LockLost` if it was lost within, unless `check` or `release` has said so already.
   */
  async [asyncDispose](): Promise<void> {
    isRemembered(this);
    try {
      await this.#kept.leave();
    } catch (failure) {
      if (!(this.#wasTold && failure instanceof LockLost)) throw failure;
    }
  }
}

function abandon(kept: Kept): void {
  if (kept.hold.isEnded) return;
  process.emitWarning(`${kept.hold.wanted} was never released`, { code: "LOCKD_FORGOTTEN" });
  kept.leave().catch(() => {}); // lost meanwhile: nobody is left to be told
}
