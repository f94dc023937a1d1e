/**
 * The clock that a client is certain by. It never goes back, no change of the wall clock moves it,
 * and it counts the time that the machine was suspended, because a lease goes on running meanwhile.
 *
 * `process.hrtime` counts that time on macOS and on Windows, and not on Linux. There
 * `/proc/uptime` does, in steps of 10 ms: it is not the clock itself but tells how much is to be
 * added to it. What neither can show is a suspension shorter than two such steps, so certainty ends
 * `MARGIN_MS` early: nobody is certain for longer than the lease.
 */

import { openSync, readSync } from "node:fs";

/** A time that does not come. */
export const NEVER = Number.POSITIVE_INFINITY;

/** By how much a lease is taken to be shorter: two steps of the uptime, and time to read it. */
export const MARGIN_MS = 25;

const UPTIME_STEP_MS = 10;
const LOOK_MS_MAX = 2;
const LOOKS_MAX = 16;

/** Milliseconds, by clocks that can be read again and again. */
export interface Clocks {
  /** Goes on steadily, but perhaps not while the machine is suspended. */
  steady(): number;
  /** Counts suspended time, too, and is rounded down; nothing where there is none. */
  uptime(): number | undefined;
}

/** What was suspended, all in all, lies between these, by one look at both clocks. */
interface ClockReading {
  readonly at: number;
  readonly least: number;
  readonly most: number;
}

/** A steady clock, and what the machine was suspended for since the first look. */
export class Clock {
  readonly #clocks: Clocks;
  #reference: ClockReading | undefined;
  #suspended = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
  }

  now(): number {
    const look = this.#look();
    if (look === undefined) return this.#clocks.steady() + this.#suspended;
    this.#reference ??= look;
    if (look.least >= this.#reference.most) {
      this.#suspended += look.most - this.#reference.least;
      this.#reference = look;
    }
    return look.at + this.#suspended;
  }

  /** Looks until nothing came between the clocks, or often enough. */
  #look(): ClockReading | undefined {
    for (let looks = 1; ; looks += 1) {
      const before = this.#clocks.steady();
      const uptime = this.#clocks.uptime();
      if (uptime === undefined) return undefined;
      const at = this.#clocks.steady();
      if (at - before <= LOOK_MS_MAX || looks === LOOKS_MAX) {
        return { at, least: uptime - at, most: uptime + UPTIME_STEP_MS - before };
      }
    }
  }
}

/** The clocks of this machine. */
class SystemClocks implements Clocks {
  readonly #line = Buffer.alloc(64);
  #file: number | undefined;

  constructor() {
    if (process.platform !== "linux") return;
    try {
      this.#file = openSync("/proc/uptime", "r");
    } catch {
      // Somewhere without /proc: the steady clock is the best that there is.
    }
  }

  steady(): number {
    return Number(process.hrtime.bigint()) / 1e6;
  }

  uptime(): number | undefined {
    if (this.#file === undefined) return undefined;
    try {
      const size = readSync(this.#file, this.#line, 0, this.#line.length, 0);
      const seconds = Number.parseFloat(this.#line.toString("latin1", 0, size));
      return Number.isFinite(seconds) ? seconds * 1000 : undefined;
    } catch {
      return undefined;
    }
  }
}

let clock: Clock | undefined;

/** Milliseconds since some moment before the process began. */
export function now(): number {
  clock ??= new Clock(new SystemClocks());
  return clock.now();
}
