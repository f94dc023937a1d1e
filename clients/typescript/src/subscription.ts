import { asyncDispose, endWhenForgotten } from "./disposal.js";
import type { Engine } from "./engine.js";
import type { Listening } from "./listening.js";
import type { WaitOptions } from "./place.js";
import type { Signal } from "./values.js";

/** Signals as they come: `for await`, or `receive`. */
export class Subscription implements AsyncIterable<Signal>, AsyncDisposable {
  readonly #engine: Engine;
  readonly #listening: Listening;

  /** @internal */
  constructor(engine: Engine, listening: Listening) {
    this.#engine = engine;
    this.#listening = listening;
    endWhenForgotten(this, () => engine.unlisten(listening));
  }

  /** How many signals were dropped, because they were not asked for soon enough. */
  get dropped(): number {
    return this.#listening.dropped;
  }

  /** How often a connection was made anew: signals may have been missed. */
  get gaps(): number {
    return this.#listening.gaps;
  }

  /** The next signal; nothing when none comes within the wait. */
  receive(options: WaitOptions = {}): Promise<Signal | undefined> {
    const received = this.#engine.receive(this.#listening, options.wait, options.signal);
    // Whoever waits has not forgotten it: what is called then holds it until then.
    return received.finally(() => this.#listening);
  }

  /** All signals, until the subscription is closed: then it throws `Cancelled`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Signal, void, undefined> {
    for (;;) {
      const signal = await this.receive();
      if (signal !== undefined) yield signal;
    }
  }

  close(): void {
    this.#engine.unlisten(this.#listening);
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }
}
