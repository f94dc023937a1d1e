/**
 * How calls wait, are woken and are cancelled.
 *
 * Timers do not count the time that the machine was suspended, so nobody here sleeps for long
 * without a look at the clock. No timer keeps the process alive: calls that wait do that.
 */

import { NEVER, now } from "./clock.js";
import { Cancelled, type LockdError } from "./errors.js";

const LOOK_INTERVAL_MS = 2000;

/** Is set once. Unlike a promise it can be waited for again and again without remembering it. */
export class Latch {
  #isSet = false;
  readonly #wakes = new Set<() => void>();

  get isSet(): boolean {
    return this.#isSet;
  }

  set(): void {
    if (this.#isSet) return;
    this.#isSet = true;
    for (const wake of [...this.#wakes]) wake();
    this.#wakes.clear();
  }

  /** Calls it when this is set, unless `unsubscribe` comes first. */
  subscribe(wake: () => void): void {
    this.#wakes.add(wake);
  }

  unsubscribe(wake: () => void): void {
    this.#wakes.delete(wake);
  }
}

/** What may be cancelled as one: everything that waits within it ends. */
export class Scope extends Latch {
  #why: LockdError | undefined;

  cancel(why: LockdError = new Cancelled("the call was cancelled")): void {
    this.#why ??= why;
    this.set();
  }

  /** Throws when it was cancelled. */
  check(): void {
    if (this.#why !== undefined) throw this.#why;
  }
}

/** Something that goes on beside its owner, in a scope of its own. */
export class Task<T> extends Latch {
  readonly #scope = new Scope();
  #result: () => T = () => {
    throw new Error("the task is not done");
  };

  /** `drop` gets a result that came although the task had been cancelled. */
  constructor(run: (scope: Scope) => Promise<T>, drop?: (result: T) => void) {
    super();
    run(this.#scope).then(
      (value) => {
        this.#result = () => value;
        if (this.#scope.isSet) drop?.(value);
        this.set();
      },
      (failure: unknown) => {
        this.#result = () => {
          throw failure;
        };
        this.set();
      },
    );
  }

  /** What came of it, once it is done. */
  result(): T {
    return this.#result();
  }

  cancel(): void {
    this.#scope.cancel();
  }
}

/** Waits until one of the latches is set, or until the deadline. Throws when cancelled. */
export async function waitUntil(
  scope: Scope,
  deadline: number,
  ...latches: Latch[]
): Promise<void> {
  for (;;) {
    scope.check();
    const left = deadline - now();
    if (left <= 0 || latches.some((latch) => latch.isSet)) return;
    await pause(Math.min(left, LOOK_INTERVAL_MS), [scope, ...latches]);
  }
}

function pause(ms: number, latches: Latch[]): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      for (const latch of latches) latch.unsubscribe(wake);
      resolve();
    };
    const timer = setTimeout(wake, Math.ceil(ms)).unref();
    for (const latch of latches) latch.subscribe(wake);
  });
}

/** Keeps the process alive while somebody waits for a call. */
export class Awake {
  #calls = 0;
  #timer: NodeJS.Timeout | undefined;

  begin(): void {
    this.#calls += 1;
    this.#timer ??= setInterval(() => {}, LOOK_INTERVAL_MS);
  }

  end(): void {
    this.#calls -= 1;
    if (this.#calls > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The moment so many milliseconds from now; without any, never. */
export function deadlineOf(wait: number | undefined): number {
  return wait === undefined ? NEVER : now() + wait;
}
